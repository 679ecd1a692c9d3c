#!/usr/bin/env python3
"""Trains the token table further, towards the language of tools.

    train_table.py MODEL_DIR OUT_DIR --documents FILE.jsonl … --sets DIR …

MODEL_DIR holds the table to start from, as `distil_table.py` leaves it; OUT_DIR
gets the trained one in the same form. Documents are JSON lines (`name`,
`description`, `server`, `input_schema`, …) and need no labels: a sentence of a
description, the description of a parameter or the name alone has to find its
own document among 255 others. Sets are directories with `corpus.jsonl` and
`queries.jsonl`; only the development queries of openly licensed sets belong
here, and none of a family that is kept for evaluation. The documents come from
`tool_documents.py`; `../assets/README.md` says with what the shipped table was
trained. Needs numpy, jax and optax; takes about five minutes on one core.
"""
import argparse, json, pathlib
import jax, jax.numpy as jnp, numpy as np, optax
import table as files
from table import WIDTH, Vocabulary, says, spaced

parser = argparse.ArgumentParser()
parser.add_argument("model", type=pathlib.Path)
parser.add_argument("out", type=pathlib.Path)
parser.add_argument("--documents", nargs="*", default=[])
parser.add_argument("--sets", nargs="*", default=[], type=pathlib.Path)
parser.add_argument("--steps", type=int, default=600)
args = parser.parse_args()
BATCH, RATE, ANCHOR, LABELLED, HEAT = 256, 6e-4, 2.0, 0.35, 0.06
FIELDS = (0.626, 0.754, 0.472, 0.443)  # name, description, parameters, server
LENGTHS = dict(query=48, name=12, description=56, parameters=32, server=10)
rng = np.random.RandomState(1)

vocabulary = Vocabulary(args.model)
PAD = len(vocabulary.words)
cut = vocabulary.cut
start = files.read(args.model)


def prepare(document):
    sentences, names, texts = says(document)
    return dict(name=cut(spaced(document["name"])), plain=spaced(document["name"]),
                parameters=cut(spaced(" ".join(names))), server=cut(spaced(document.get("server") or "")),
                about=document.get("server_description") or "",
                description=(document.get("description") or "")[:250], texts=texts, sentences=sentences)


documents = [prepare(json.loads(line)) for path in args.documents for line in open(path)]
labelled = []
for folder in args.sets:
    corpus = {d["id"]: prepare(d) for d in map(json.loads, open(folder / "corpus.jsonl"))}
    queries = [json.loads(line) for line in open(folder / "queries.jsonl")]
    labelled.append((corpus, [q for q in queries if any(r in corpus for r in q["relevant"])]))
    documents += corpus.values()


def thin(text, share):
    words = text.split()
    return " ".join([w for w in words if rng.rand() > share] or words)


def own_words():
    """A document and something it says that stands for a query."""
    while True:
        d, r = documents[rng.randint(len(documents))], rng.rand()
        if r < 0.45 and d["sentences"]:
            at = 0 if rng.rand() < 0.5 else rng.randint(len(d["sentences"]))
            rest = " ".join(s for i, s in enumerate(d["sentences"]) if i != at)[:250]
            return thin(d["sentences"][at], 0.25), d, d["name"], rest
        if r < 0.6 and d["sentences"]:
            return thin(d["sentences"][0], 0.3), d, d["name"], d["description"]
        if r < 0.75 and d["texts"]:
            return d["texts"][rng.randint(len(d["texts"]))], d, d["name"], d["description"]
        if r < 0.9 and d["sentences"]:
            return d["plain"], d, [], d["description"]
        if r >= 0.9 and d["about"]:
            return d["about"][:200], d, d["name"], d["description"]


def gold():
    corpus, queries = labelled[0]
    query = queries[rng.randint(len(queries))]
    relevant = [r for r in query["relevant"] if r in corpus]
    d = corpus[relevant[rng.randint(len(relevant))]]
    text = thin(query["query"], 0.2) if rng.rand() < 0.3 else query["query"]
    return text, d, d["name"], d["description"]


def batch():
    draw = own_words
    if labelled and rng.rand() < LABELLED:
        rng.shuffle(labelled)
        draw = gold
    rows, who = {key: [] for key in LENGTHS}, []
    for _ in range(BATCH):
        query, d, name, description = draw()
        who.append(id(d))
        parts = (cut(query), name, cut(description), d["parameters"], d["server"])
        for (key, length), part in zip(LENGTHS.items(), parts):
            rows[key].append((part + [PAD] * length)[:length])
    same = np.equal.outer(who, who) & ~np.eye(BATCH, dtype=bool)
    return [np.array(rows[key], np.int32) for key in LENGTHS] + [same]


def unit(x):
    return x / jnp.maximum(jnp.linalg.norm(x, axis=1, keepdims=True), 1e-6)


def loss(table, anchor, query, name, description, parameters, server, same):
    padded = jnp.concatenate([table[:PAD], jnp.zeros((1, WIDTH))])
    pool = lambda rows: unit(padded[rows].sum(1))
    document = unit(sum(w * pool(p) for w, p in zip(FIELDS, (name, description, parameters, server))))
    likeness = jnp.where(same, -1e9, pool(query) @ document.T / HEAT)
    found = jnp.mean(jnp.diag(jax.nn.log_softmax(likeness, axis=1)))
    back = jnp.mean(jnp.diag(jax.nn.log_softmax(likeness, axis=0)))
    return -found - 0.3 * back + ANCHOR * jnp.sum((table - anchor) ** 2) / len(anchor)


optimiser = optax.adam(optax.linear_schedule(RATE, RATE * 0.1, args.steps))
anchor = table = jnp.asarray(start)
state = optimiser.init(table)


@jax.jit
def step(table, state, rows):
    value, gradient = jax.value_and_grad(loss)(table, anchor, *rows)
    updates, state = optimiser.update(gradient, state)
    return optax.apply_updates(table, updates), state, value


for at in range(args.steps):
    table, state, value = step(table, state, batch())
    if at % 50 == 0:
        print(at, float(value), flush=True)
files.write(args.out, np.asarray(table), vocabulary)
