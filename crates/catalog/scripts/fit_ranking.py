#!/usr/bin/env python3
"""Fits the weights of the second look (`src/index/rank.rs`).

    cargo run --release -p gatelet-catalog --example features DIR > features.jsonl
    fit_ranking.py features.jsonl [--leave-out]

DIR is a directory of sets as `catalog::eval` reads them. A linear model over
the features and the products of the first of them with the query's length, by
listwise cross-entropy, each family of sets counting as given below, with a ridge. With
--leave-out every family is also scored by weights fitted without it, which is
what says whether a feature generalises. Prints recall@5 and the weights.
Needs numpy and scipy.
"""
import json, sys
import numpy as np
from scipy.optimize import minimize

# The token table was trained on development queries of the last three, so its
# directions look better there than they are elsewhere: they count less.
FAMILIES = {"apibank": 1.0, "contextweaver": 1.0, "livemcp": 0.6, "mcp16k": 0.25,
            "mcpbench": 1.0, "bfcl": 0.3, "metatool": 0.15, "sealtools": 0.4}
RIDGE = 0.03
WITH_LENGTH = 11  # how many features weigh differently in a long query


def read(path):
    sets = {}
    for line in open(path):
        row = json.loads(line)
        if row["seen"]:
            sets.setdefault(row["set"], []).append(row)
    out = {}
    for name, rows in sets.items():
        deep = max(len(row["seen"]) for row in rows)
        X = np.zeros((len(rows), deep, len(rows[0]["seen"][0][1]) + WITH_LENGTH), np.float32)
        Y = np.zeros((len(rows), deep), np.float32)
        M = np.zeros((len(rows), deep), bool)
        for i, row in enumerate(rows):
            features = np.array([seen for _, seen in row["seen"]], np.float32)
            X[i, :len(features)] = np.concatenate([features, features[:, :WITH_LENGTH] * row["length"]], 1)
            Y[i, :len(features)] = np.isin([place for place, _ in row["seen"]], row["relevant"])
            M[i, :len(features)] = True
        out[name] = (X, Y, M, np.array([max(row["n_relevant"], 1) for row in rows]))
    return out


def family(name):
    return next(f for f in FAMILIES if name.startswith(f))


def fit(sets):
    width = next(iter(sets.values()))[0].shape[2]

    def loss(w):
        total, gradient = RIDGE * (w @ w), 2 * RIDGE * w
        for name, (X, Y, M, _) in sets.items():
            weight = FAMILIES[family(name)]
            score = np.where(M, X @ w, -1e9)
            score -= score.max(1, keepdims=True)
            p = np.exp(score)
            p /= p.sum(1, keepdims=True)
            n = Y.sum(1, keepdims=True)
            target, known = Y / np.maximum(n, 1), n[:, 0] > 0
            total -= weight * ((target * np.log(p + 1e-12)).sum(1) * known).mean()
            gradient = gradient - weight * np.einsum("qc,qcn->n", (target - p) * known[:, None], X) / len(Y)
        return total, gradient
    return minimize(loss, np.zeros(width), jac=True, method="L-BFGS-B", options={"maxiter": 300}).x


def recall(one, w, depth=5):
    X, Y, M, n = one
    order = np.argsort(-np.where(M, X @ w, -1e9), 1, kind="stable")[:, :depth]
    return (np.take_along_axis(Y, order, 1).sum(1) / n).mean()


if __name__ == "__main__":
    sets = read(sys.argv[1])
    w = fit(sets)
    left = {}
    if "--leave-out" in sys.argv:
        related = lambda name: {"mcp16k": "livemcp"}.get(family(name), family(name))
        for out in {related(name) for name in sets}:
            v = fit({name: one for name, one in sets.items() if related(name) != out})
            left.update({name: recall(one, v) for name, one in sets.items() if related(name) == out})
    for name, one in sets.items():
        print(f"{name:20} {recall(one, w):.3f} {left.get(name, float('nan')):.3f}")
    print(f"{'mean':20} {np.mean([recall(one, w) for one in sets.values()]):.3f}",
          f"{np.mean(list(left.values())):.3f}" if left else "")
    n = len(w) - WITH_LENGTH
    for short, more in zip(w[:n], np.append(w[n:], np.zeros(n - WITH_LENGTH))):
        print(f"    ({short:.2f}, {more:.2f}),")
