"""check_fitted.py FOLDER [SUBJECT]: checks the predictions that predict_fitted.sh has written."""
import csv
import json
import math
import struct
import sys
import zipfile

folder, subject = sys.argv[1], (sys.argv[2:] or ["target"])[0]
rows = lambda name: [json.loads(line) for line in open(f"{folder}/{name}")]
table = lambda name: list(csv.DictReader(open(f"{folder}/{name}")))


def array(name, key):
    data = zipfile.ZipFile(f"{folder}/{name}").read(key + ".npy")
    header = struct.unpack("<H", data[8:10])[0] + 10
    kind = data[:header].decode("latin-1")
    code, size = ("f", 4) if "<f4" in kind else ("q", 8)
    return struct.unpack(f"<{(len(data) - header) // size}{code}", data[header:])


def close(a, b, tolerance):
    assert abs(a - b) <= tolerance * max(1, abs(b)), (a, b)


if subject == "target":
    # y = 1000 + 30 x for x = 30 … 39, outside of the training rows; a line is learned exactly.
    for i, row in enumerate(rows("predicted.jsonl")):
        assert row["row"] == i and row["label"] == 1000 + 30 * (30 + i), row
        close(row["guess"][0], row["label"], 2e-2)
    for i, row in enumerate(table("predicted.csv")):
        assert float(row["label"]) == 1000 + 30 * (30 + i), row
        close(float(row["guess"]), float(row["label"]), 2e-2)
    for row, value in zip(rows("predicted.jsonl"), array("predicted.npz", "guess")):
        close(value, row["guess"][0], 1e-6)
    file = rows("file.jsonl")
    assert len(file) == 40 and file[39]["label"] == 2170
    close(file[39]["guess"][0], rows("predicted.jsonl")[9]["guess"][0], 1e-6)
elif subject in ("softmax", "log_softmax", "sigmoid"):
    values = array(f"{subject}.npz", "p")
    for i, row in enumerate(rows(f"{subject}.jsonl")):
        wanted = values[3 * i:3 * i + 3]
        if subject == "log_softmax":
            wanted = [math.exp(v) for v in wanted]
        for a, b in zip(row["probabilities"], wanted):
            close(a, b, 1e-6)
        assert row["class"] == str(max(range(3), key=lambda k: wanted[k]))
        assert row["label"] in ("0", "1", "2"), row
elif subject == "skipped":
    jsonl = rows("skipped.jsonl")
    assert [r["row"] for r in jsonl] == [0, 1, 2, 3, 4]
    assert ["skipped" in r for r in jsonl] == [False, True, False, True, False]
    assert "bad.csv:3" in jsonl[1]["skipped"] and "bad.csv:5" in jsonl[3]["skipped"], jsonl
    assert [r["label"] for r in jsonl if "label" in r] == [1030, 1090, 1150]
    cells = table("skipped.csv")
    assert [r["row"] for r in cells] == ["0", "1", "2", "3", "4"]
    assert [bool(r["skipped"]) for r in cells] == [False, True, False, True, False], cells
    assert cells[1]["guess"] == "" and cells[1]["label"] == ""
    guess = array("skipped.npz", "guess")
    assert [math.isnan(v) for v in guess] == [False, True, False, True, False]
    assert array("skipped.npz", "skipped") == (1, 3)
    close(guess[4], jsonl[4]["guess"][0], 1e-6)
elif subject == "unknown":
    madrid, bern = rows("unknown.jsonl")
    assert bern["class"] == "0" and bern["probability"] > 0.9, bern
    assert max(abs(a - b) for a, b in zip(madrid["probabilities"], bern["probabilities"])) > 1e-5, (madrid, bern)
