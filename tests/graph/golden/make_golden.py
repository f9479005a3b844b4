#!/usr/bin/env python3
"""Writes small lists of nodes and edges, and what SciPy and NumPy make of them, next to this file.

    python3 tests/graph/golden/make_golden.py      (needs numpy and scipy)
"""
import json
import os

import numpy as np
import scipy.sparse as sp

HERE = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(7)


def write(name, lines):
    with open(os.path.join(HERE, name), "w") as f:
        f.write("\n".join(lines) + "\n")


def rows(matrix):
    """Neighbors by row, parallel edges kept, in rising order."""
    out = [[] for _ in range(matrix.shape[0])]
    for u, v in sorted(zip(matrix.row.tolist(), matrix.col.tolist())):
        out[u].append(v)
    return out


# Users and items with ids that are far apart, clicks with weights, some of them twice.
users = np.sort(rng.choice(10**6, 30, replace=False)).astype(np.uint64)
users[-1] = 2**64 - 1
items = [f"item-{k}" for k in rng.choice(1000, 20, replace=False)]
u = rng.integers(0, 30, 120)
v = rng.integers(0, 20, 120)
w = np.round(rng.gamma(1.0, 2.0, 120), 3).astype(np.float32)
w[::17] = 0
write("clicks.tsv", [f"{users[a]}\t{items[b]}\t{c:g}" for a, b, c in zip(u, v, w)])
order = rng.permutation(30)
age = rng.normal(40, 9, 30).round(3)
country = rng.choice(["de", "fr", "it"], 30)
write("users.csv", ["id,age,country,f0,f1"] + [f"{users[k]},{age[k]},{country[k]},{k},{k * k}" for k in order])

names = sorted(set(items))
number = {name: k for k, name in enumerate(names)}
used = sorted({items[b] for b in v})
number = {name: k for k, name in enumerate(used)}
columns = np.array([number[items[b]] for b in v])
clicks = sp.coo_matrix((w, (u, columns)), shape=(30, len(used)))
summed = clicks.tocsr()
summed.sum_duplicates()
summed.sort_indices()
golden = {
    "users": [str(x) for x in users],
    "items": used,
    "age": [float(np.float32(x)) for x in age],
    "country": np.unique(country, return_inverse=True)[1].tolist(),
    "clicks": rows(clicks),
    "clicked_by": rows(clicks.T.tocoo()),
    "merged_indptr": summed.indptr.tolist(),
    "merged_indices": summed.indices.tolist(),
    "merged_weights": [float(x) for x in summed.data],
    "weight_of_users": [float(x) for x in np.asarray(clicks.sum(axis=1)).ravel()],
}
with open(os.path.join(HERE, "golden.json"), "w") as f:
    json.dump(golden, f, indent=0)
    f.write("\n")
