"""Checks that NAME.npz, NAME.csv and NAME.jsonl hold the same predictions of a classifier."""

import ast
import csv
import json
import math
import struct
import sys
import zipfile

name = sys.argv[1]
raw = zipfile.ZipFile(name + ".npz").read("logits.npy")
length = struct.unpack("<H", raw[8:10])[0]
header = ast.literal_eval(raw[10 : 10 + length].decode())
assert header["descr"] == "<f4" and not header["fortran_order"], header
rows, classes = header["shape"]
logits = struct.unpack(f"<{rows * classes}f", raw[10 + length :])
table = list(csv.DictReader(open(name + ".csv")))
objects = [json.loads(line) for line in open(name + ".jsonl")]
assert len(table) == len(objects) == rows, (len(table), len(objects), rows)
for i in range(rows):
    row = logits[i * classes : (i + 1) * classes]
    total = sum(math.exp(x - max(row)) for x in row)
    expected = [math.exp(x - max(row)) / total for x in row]
    best = max(range(classes), key=lambda c: row[c])
    for p, q, c in zip(expected, objects[i]["probabilities"], range(classes)):
        assert abs(p - q) < 1e-6 and abs(p - float(table[i][f"p_{c}"])) < 1e-6, (i, c)
    assert objects[i]["class"] == table[i]["class"] == str(best), i
    assert objects[i]["row"] == int(table[i]["row"]) == i
    assert objects[i]["source"] == table[i]["source"] == f"digit {i}", objects[i]["source"]
