#!/usr/bin/env python3
"""Figures of scikit-learn on the prepared data, where docs/guide/recipes.md names no published one.

  peers.py FOLDER [NAME …]      FOLDER as recipe-data filled it; needs scikit-learn
"""

import csv
import glob
import sys
import zlib

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def read(path):
    with open(path, encoding="utf-8") as file:
        rows = list(csv.reader(file))
    return rows[0], rows[1:]


def diamonds(folder):
    header, rows = read(f"{folder}/diamonds.csv")
    facts = [{k: (float(v) if k not in ("cut", "color", "clarity") else v)
              for k, v in zip(header[:-1], row)} for row in rows]
    price = np.array([float(row[-1]) for row in rows])
    x = DictVectorizer(sparse=False).fit_transform(facts)
    fit_x, x, fit_y, y = train_test_split(x, price, test_size=0.2, random_state=0)
    for model in (MLPRegressor(hidden_layer_sizes=(100,), random_state=0), HistGradientBoostingRegressor(random_state=0)):
        guess = make_pipeline(StandardScaler(), model).fit(fit_x, fit_y).predict(x)
        print(f"diamonds: {type(model).__name__} RMSE {np.sqrt(np.mean((guess - y) ** 2)):.1f}")


def packages(folder):
    (_, fit), (_, rows) = read(f"{folder}/packages.csv"), read(f"{folder}/packages-test.csv")
    words = CountVectorizer()
    fit_x, x = words.fit_transform([r[0] for r in fit]), words.transform([r[0] for r in rows])
    for alpha in (1.0, 0.3, 0.1, 0.03, 0.01):
        guess = MultinomialNB(alpha=alpha).fit(fit_x, [r[1] for r in fit]).predict(x)
        score = f1_score([r[1] for r in rows], guess, average="macro")
        print(f"packages: MultinomialNB(alpha={alpha}) macro F1 {100 * score:.1f}")


def stress(folder):
    _, rows = read(f"{folder}/stress.csv")
    samples, tags = [], []
    for sounds, marks in rows:
        sounds = sounds.split()
        vowels = [i for i, mark in enumerate(marks.split()) if mark != "-"]
        around = {i: sounds[i] if 0 <= i < len(sounds) else "none" for i in range(-4, len(sounds) + 4)}
        at = []
        for i in range(len(sounds)):
            each = {f"{d}": around[i + d] for d in range(-4, 5)}
            each["from start"], each["from end"] = str(min(i, 8)), str(min(len(sounds) - i, 8))
            each["vowels before"] = str(sum(v < i for v in vowels))
            each["vowels behind"] = str(sum(v > i for v in vowels))
            at.append(each)
        samples.append(at)
        tags.append(marks.split())
    fit, test = train_test_split(range(len(rows)), test_size=0.2, random_state=0)
    table = DictVectorizer()
    fit_x = table.fit_transform(each for i in fit for each in samples[i])
    model = LogisticRegression(max_iter=300).fit(fit_x, [t for i in fit for t in tags[i]])
    guess = model.predict(table.transform(each for i in test for each in samples[i]))
    truth = [t for i in test for t in tags[i]]
    print(f"stress: LogisticRegression accuracy {100 * accuracy_score(truth, guess):.1f}%, "
          f"macro F1 {100 * f1_score(truth, guess, average='macro'):.1f}")


def clothes(folder):
    def images(part):
        pixels, labels = [], []
        for path in sorted(glob.glob(f"{folder}/{part}/*/*.png")):
            with open(path, "rb") as file:
                data = file.read()
            at = data.index(b"IDAT")
            size = int.from_bytes(data[at - 4:at], "big")
            rows = np.frombuffer(zlib.decompress(data[at + 4:at + 4 + size]), np.uint8).reshape(28, 29)
            pixels.append(rows[:, 1:].reshape(-1))
            labels.append(path.split("/")[-2])
        return np.array(pixels, np.float32), labels
    (fit_x, fit_y), (x, y) = images("clothes"), images("clothes-test")
    guess = KNeighborsClassifier(1, algorithm="brute").fit(fit_x, fit_y).predict(x)
    print(f"clothes: KNeighborsClassifier(1) on pixels {100 * accuracy_score(y, guess):.2f}%")


def airline(folder):
    _, rows = read(f"{folder}/airline.csv")
    values = np.array([float(row[1]) for row in rows])
    first = len(values) * 4 // 5
    print(f"airline: seasonal naive, MAE {np.abs(values[12:first] - values[:first - 12]).mean():.2f} in the "
          f"first four fifths, {np.abs(values[first:] - values[first - 12:-12]).mean():.2f} in the last")


def main():
    known = {f.__name__: f for f in (airline, packages, stress, diamonds, clothes)}
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= known.keys():
        sys.exit(f"{__doc__}  NAME: {', '.join(known)}")
    for name in sys.argv[2:] or known:
        known[name](sys.argv[1])


if __name__ == "__main__":
    main()
