#!/usr/bin/env python3
"""Teaches the token table what a sentence encoder knows of texts about tools.

    distil_table.py MODEL_DIR OUT_DIR --teacher DIR --documents FILE.jsonl … --sets DIR … [--places FILE.npz]

MODEL_DIR holds a table as `pack_table.py` describes it; OUT_DIR gets one in the
same form, for `train_table.py` to start from. `--teacher` is the directory of
all-MiniLM-L6-v2. The documents are those of `train_table.py`; of the sets only
the corpora are read.

The teacher places every document, its name, two of its sentences, what is said
about one parameter and about the server. Then rows are sought whose means over
the pieces of these texts lie where the teacher placed them: least squares, drawn
towards where the teacher places each piece alone. These rows stand beside those of
the given table, and of both together the 256 axes are kept along which texts differ
most. Asking the teacher takes about fifteen minutes on one core; `--places` keeps its
answers for another run. Needs numpy, scipy, torch and transformers.
"""
import argparse, json, pathlib

import numpy as np
import scipy.sparse
import torch
from transformers import AutoModel, AutoTokenizer

import table as files
from table import WIDTH, Vocabulary, says, spaced

PULL = 0.05  # towards the pieces alone
ROUNDS = 40  # of conjugate gradients
SHARES = 0.6, 0.4  # of a cosine: the given table's, the teacher's
ROWS = 0.2  # how much pieces count beside texts when axes are chosen

parser = argparse.ArgumentParser()
parser.add_argument("model", type=pathlib.Path)
parser.add_argument("out", type=pathlib.Path)
parser.add_argument("--teacher", required=True)
parser.add_argument("--places", type=pathlib.Path)
parser.add_argument("--documents", nargs="*", default=[])
parser.add_argument("--sets", nargs="*", default=[], type=pathlib.Path)
args = parser.parse_args()
torch.set_num_threads(1)
vocabulary = Vocabulary(args.model)
tokenizer = AutoTokenizer.from_pretrained(args.teacher, local_files_only=True)
teacher = AutoModel.from_pretrained(args.teacher, local_files_only=True).eval()


def place(texts, longest=96, batch=64):
    """Where the teacher places texts: the mean of its last layer, of length one."""
    cut = tokenizer(texts, truncation=True, max_length=longest)["input_ids"]
    order = sorted(range(len(cut)), key=lambda i: len(cut[i]))
    out = np.zeros((len(cut), teacher.config.hidden_size), np.float32)
    with torch.inference_mode():
        for at in range(0, len(order), batch):
            some = order[at:at + batch]
            rows = torch.nn.utils.rnn.pad_sequence([torch.tensor(cut[i]) for i in some], batch_first=True)
            mask = torch.nn.utils.rnn.pad_sequence([torch.ones(len(cut[i])) for i in some], batch_first=True)
            seen = teacher(input_ids=rows, attention_mask=mask.long()).last_hidden_state
            mean = (seen * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            out[some] = torch.nn.functional.normalize(mean, dim=1).numpy()
            if at // batch % 100 == 0:
                print(at, "of", len(order), flush=True)
    return out


def places_of(texts):
    """The same, in half precision, with the answers of earlier runs."""
    known = {}
    if args.places and args.places.exists():
        kept = np.load(args.places)
        known = dict(zip(json.loads(str(kept["texts"])), kept["places"]))
    new = [text for text in texts if text not in known]
    known.update(zip(new, place(new).astype(np.float16) if new else []))
    places = np.stack([known[text] for text in texts])
    if args.places and new:
        np.savez(args.places, texts=np.array(json.dumps(list(known))), places=np.stack(list(known.values())))
    return places.astype(np.float32)


def gather(documents):
    """What the teacher is asked: a document as a whole and what it says, each text once."""
    rng = np.random.RandomState(7)
    texts = {}
    for document in documents:
        sentences, _, explanations = says(document)
        name, server = spaced(document["name"]), spaced(document.get("server") or "")
        whole = f"{name}. {(document.get('description') or '')[:300]}" + (f" ({server})" if server else "")
        some = [" ".join(whole.split()), name, (document.get("server_description") or "")[:200]]
        some += [sentence[:250] for sentence in sentences[:1]]
        if 1 < len(sentences):
            some.append(sentences[rng.randint(1, len(sentences))][:250])
        if explanations:
            some.append(explanations[rng.randint(len(explanations))][:250])
        texts.update((text, None) for text in some if text)
    return list(texts)


def fit(means, places, rows):
    """The rows nearest to the given ones whose means over texts are the places."""
    back = means.T.tocsr()
    now = means @ rows
    rows = rows * ((now * places).sum() / (now * now).sum())
    left = back @ (places - means @ rows)
    step, length = left.copy(), (left * left).sum(0)
    for _ in range(ROUNDS):
        turned = back @ (means @ step) + PULL * step
        far = length / np.maximum((step * turned).sum(0), 1e-12)
        rows, left = rows + far * step, left - far * turned
        before, length = length, (left * left).sum(0)
        step = left + length / np.maximum(before, 1e-20) * step
    return rows


documents = [json.loads(line) for path in args.documents for line in open(path)]
documents += [json.loads(line) for folder in args.sets for line in open(folder / "corpus.jsonl")]
texts = gather(documents)
pieces = [vocabulary.cut(text) for text in texts]
texts = [text for text, some in zip(texts, pieces) if some]
pieces = [some for some in pieces if some]
at = np.repeat(np.arange(len(pieces)), [len(some) for some in pieces])
shares = np.concatenate([np.full(len(some), 1 / len(some), np.float32) for some in pieces])
means = scipy.sparse.csr_matrix(
    (shares, (at, np.concatenate(pieces))), shape=(len(pieces), len(vocabulary.words)))

given = files.read(args.model)
taught = fit(means, places_of(texts), places_of([word.removeprefix("##") for word in vocabulary.words]))
tables = [given, taught]
lengths = [np.linalg.norm(means @ rows, axis=1).mean() for rows in tables]
both = np.concatenate([rows / length * share ** 0.5 for rows, length, share in zip(tables, lengths, SHARES)], 1)
seen = means @ both
spread = seen.T @ seen / len(seen) + ROWS * both.T @ both / (both * both).sum()
_, axes = np.linalg.eigh(spread)
rows = both @ axes[:, ::-1][:, :WIDTH]
# As long as the given rows are in the mean, because training takes steps of a fixed size.
rows *= np.linalg.norm(given, axis=1).mean() / np.linalg.norm(rows, axis=1).mean()
files.write(args.out, rows, vocabulary)
