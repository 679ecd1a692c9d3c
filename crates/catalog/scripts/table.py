"""What the scripts of the token table share: its files, and how text is cut into pieces."""
import re, unicodedata

import numpy as np

WIDTH = 256


class Vocabulary:
    """WordPieces, greedy and uncased."""

    def __init__(self, model):
        self.words = [word for word in (model / "vocab.txt").read_text("utf-8").split("\n") if word]
        self.ids = {word: i for i, word in enumerate(self.words)}

    def cut(self, text):
        text = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
        words = re.findall(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+|[^\w\s]|_", text)
        return [piece for word in words for piece in self.pieces(word)]

    def pieces(self, word):
        out, at = [], 0
        while at < len(word) <= 100:
            for end in range(len(word), at, -1):
                piece = self.ids.get(("##" if at else "") + word[at:end])
                if piece is not None:
                    break
            else:
                return []
            out.append(piece)
            at = end
        return out


def read(model):
    rows = np.fromfile(model / "tool-embed-256.i8", np.int8).reshape(-1, WIDTH).astype(np.float32)
    return rows * np.fromfile(model / "tool-embed-256.scale.f32", "<f4")[:, None]


def write(out, table, vocabulary):
    scales = np.abs(table).max(1) / 127
    scales[scales == 0] = 1
    out.mkdir(parents=True, exist_ok=True)
    np.round(table / scales[:, None]).astype(np.int8).tofile(out / "tool-embed-256.i8")
    scales.astype("<f4").tofile(out / "tool-embed-256.scale.f32")
    (out / "vocab.txt").write_text("\n".join(vocabulary.words) + "\n", "utf-8")


def spaced(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\W_]+", " ", name).strip()


def says(document):
    """The sentences of a document, its parameters' names, and what is said about them."""
    names, texts = [], []
    def walk(schema, depth):
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if depth and isinstance(properties, dict):
            for name, value in properties.items():
                names.append(name)
                if isinstance(value, dict):
                    if isinstance(value.get("description"), str):
                        texts.append(value["description"])
                    walk(value, depth - 1)
                    walk(value.get("items"), depth - 1)
    walk(document.get("input_schema"), 2)
    description = (document.get("description") or "")[:1200]
    sentences = [s.strip() for s in re.split(r"(?<=[.!?。])\s+|\n+", description)]
    long = lambda texts: [text for text in texts if len(text) > 12][:12]
    return long(sentences), names, long(texts)
