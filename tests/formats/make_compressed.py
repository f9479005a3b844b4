"""Makes data/rows.csv.*, one table in each compression that is read. Needs zstandard and lz4."""
import bz2
import gzip
import lzma
import os

import lz4.frame
import zstandard

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
rows = "".join(["x,label\n", *(f"{i / 8},{'odd' if i % 2 else 'even'}\n" for i in range(64))]).encode()
forms = {"gz": gzip.compress(rows, mtime=0), "bz2": bz2.compress(rows), "xz": lzma.compress(rows), "zst": zstandard.ZstdCompressor(level=9).compress(rows), "lz4": lz4.frame.compress(rows)}
for ending, content in forms.items():
    with open(os.path.join(folder, f"rows.csv.{ending}"), "wb") as file:
        file.write(content)
