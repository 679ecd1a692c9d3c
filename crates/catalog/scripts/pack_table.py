#!/usr/bin/env python3
"""Packs a token table into the files that the index compiles in.

    pack_table.py MODEL_DIR ASSETS_DIR

MODEL_DIR holds `vocab.txt` (one WordPiece per line), `tool-embed-256.i8` (one
int8 row of 256 per piece) and `tool-embed-256.scale.f32` (one little-endian
float per row). Written to ASSETS_DIR, all little endian:

    table.rows     the kept rows, 160 bytes each, turned so that the axes on which
                   rows differ most come first (the principal axes); a turn leaves
                   every angle as it is. The first 64 values are int8, the other 192
                   have four bits: value + 8, two a byte, the first in its lower half
    table.f32      two scales per kept row: of its first 64 values, and of the others
    table.words    the pieces, in row order, separated by newlines
    table.starts   u32 per row and one more: where each piece starts in table.words
    table.slots    65,536 u16: an open-addressing hash of the pieces (FNV-1a, 32
                   bits, folded to 16, linear probing); a slot is row + 1, or 0

Needs numpy. Rows that no text can reach ([unused…] and the special tokens) are left out.
"""
import pathlib, struct, sys

import numpy as np

model, assets = map(pathlib.Path, sys.argv[1:3])
WIDTH = 256
vocabulary = (model / "vocab.txt").read_text("utf-8").split("\n")
if vocabulary[-1] == "":
    vocabulary.pop()
rows = (model / "tool-embed-256.i8").read_bytes()
scales = (model / "tool-embed-256.scale.f32").read_bytes()
assert len(rows) == WIDTH * len(vocabulary) and len(scales) == 4 * len(vocabulary)

kept = [i for i, word in enumerate(vocabulary)
        if not (word.startswith("[") and word.endswith("]") and len(word) > 1)]
blob, starts, slots = bytearray(), [], [0] * 65536
for row, i in enumerate(kept):
    word = vocabulary[i].encode()
    starts.append(len(blob))
    blob += word + b"\n"
    value = 2166136261
    for byte in word:
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    slot = (value ^ value >> 16) & 0xFFFF
    while slots[slot]:
        slot = (slot + 1) & 0xFFFF
    slots[slot] = row + 1
starts.append(len(blob))
(assets / "table.words").write_bytes(blob)
(assets / "table.starts").write_bytes(struct.pack(f"<{len(starts)}I", *starts))
(assets / "table.slots").write_bytes(struct.pack("<65536H", *slots))

table = np.frombuffer(rows, np.int8).reshape(-1, WIDTH)[kept]
table = table * np.frombuffer(scales, "<f4")[kept].astype(float)[:, None]
_, axes = np.linalg.eigh(table.T @ table)
axes = axes[:, ::-1]
# An axis has no sign of its own: its largest value is made positive.
axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(WIDTH)])
table = table @ axes


def rounded(part, most):
    """Rows as whole numbers from -most to most, and the step of each row that loses least."""
    largest = np.abs(part).max(1, keepdims=True)
    largest[largest == 0] = 1
    shares = [1.0] if most == 127 else [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    tries = []
    for share in shares:
        step = (largest * share / most).astype("<f4")
        numbers = np.clip(np.round(part / step), -most, most)
        tries.append((((numbers * step - part) ** 2).sum(1), numbers, step[:, 0]))
    best = np.argmin([loss for loss, _, _ in tries], axis=0)
    each = np.arange(len(part))
    return np.stack([n for _, n, _ in tries])[best, each], np.stack([s for _, _, s in tries])[best, each]


FINE = 64
fine, fine_steps = rounded(table[:, :FINE], 127)
coarse, coarse_steps = rounded(table[:, FINE:], 7)
halves = (coarse + 8).astype(np.uint8)
packed = halves[:, 0::2] | halves[:, 1::2] << 4
(assets / "table.rows").write_bytes(np.hstack([fine.astype(np.int8).view(np.uint8), packed]).tobytes())
(assets / "table.f32").write_bytes(np.stack([fine_steps, coarse_steps], 1).astype("<f4").tobytes())
print(len(kept), "rows")
