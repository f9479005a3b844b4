"""Writes damaged and hostile data files into a folder: make_bad_data.py FOLDER tests/data/formats"""

import gzip
import io
import json
import math
import os
import shutil
import struct
import sys
import zipfile
import zlib

out, formats = sys.argv[1], sys.argv[2]


def write(name, content):
    path = os.path.join(out, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(content if isinstance(content, bytes) else content.encode())


def table(name, change=None, header="a,b,label"):
    rows = [[f"{i * 0.1:.1f}", f"{1 - i * 0.1:.1f}", str(i % 3)] for i in range(9)]
    if change:
        change(rows)
    write(name, "\n".join([header] + [",".join(r) for r in rows]) + "\n")


def cell(row, column, value):
    def change(rows):
        rows[row][column] = value

    return change


# Line n of the file is row n - 2.
table("good.csv")
write("empty.csv", "")
write("header_only.csv", "a,b,label\n")
table("uneven.csv", lambda rows: rows[3].pop())
table("quote.csv", cell(2, 0, '"0.5'))
table("word.csv", cell(4, 1, "high"))
table("missing.csv", cell(1, 0, ""))
table("label.csv", cell(5, 2, "3"))
table("negative.csv", cell(5, 2, "-1"))
table("nan.csv", cell(2, 0, "nan"))
table("infinite.csv", cell(2, 1, "inf"))
table("other_columns.csv", header="a,b,class")


def all_bad(rows):
    for row in rows:
        row[0] = "bad"


table("all_bad.csv", all_bad)
table("only_words.csv", all_bad)
write("commas.csv", "," * 4_000_000 + "\n1\n")
write("binary.csv", bytes(range(256)) * 64)


def npy(descr, shape, data):
    header = str({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def floats(count, bad=None):
    values = [0.5] * count
    if bad is not None:
        values[bad] = math.nan
    return struct.pack(f"<{count}f", *values)


def npz(**arrays):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as z:
        for name, content in arrays.items():
            z.writestr(name + ".npy", content)
    return buffer.getvalue()


labels = npy("<i8", (10,), struct.pack("<10q", *[i % 3 for i in range(10)]))
good = npz(x=npy("<f4", (10, 2), floats(20)), label=labels)
write("text.npz", "these are not arrays\n" * 10)
write("cut.npz", good[: len(good) - 30])
write("huge_shape.npz", npz(x=npy("<f4", (1 << 30, 1 << 20), floats(20)), label=labels))
entry = good.index(b"PK\x01\x02")
write("huge_entry.npz", good[: entry + 24] + struct.pack("<I", 0xFFFFFFF0) + good[entry + 28 :])
write(
    "different_lengths.npz",
    npz(x=npy("<f4", (10, 2), floats(20)), label=npy("<i8", (9,), struct.pack("<9q", *[0] * 9))),
)
write("nan.npz", npz(x=npy("<f4", (10, 2), floats(20, bad=7)), label=labels))
write(
    "label.npz",
    npz(x=npy("<f4", (10, 2), floats(20)), label=npy("<i8", (10,), struct.pack("<10q", *[5] * 10))),
)
write("cut.npy", npy("<f4", (10, 2), floats(19)))
write("huge.npy", npy("<f4", (1 << 40, 1 << 40), floats(20)))
write("huge_header.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", 0xFFFFFF00) + b"{" * 100)


def idx(kind, sizes, data):
    return bytes([0, 0, kind, len(sizes)]) + b"".join(struct.pack(">I", s) for s in sizes) + data


pictures = idx(8, [5, 28, 28], bytes(5 * 784))
write("images.idx", pictures)
write("labels.idx", idx(8, [5], bytes([0, 1, 2, 3, 4])))
write("label_12.idx", idx(8, [5], bytes([0, 1, 12, 3, 4])))
write("four.idx", idx(8, [4, 28, 28], bytes(4 * 784)))
write("cut.idx", pictures[:-5])
write("huge.idx", idx(8, [0xFFFFFFFF, 0xFFFF, 0xFFFF], bytes(100)))
write("cut.idx.gz", gzip.compress(os.urandom(64) + pictures)[:80])
write("cut.idx.gz", gzip.compress(pictures)[:-12])
write("text.idx", "no pictures at all\n")


def read(name):
    with open(os.path.join(formats, name), "rb") as f:
        return f.read()


write("cut_png/a/x.png", read("rgb.png")[:-20])
write("cut_jpeg/a/x.jpg", read("rgb.jpg")[: len(read("rgb.jpg")) // 2])


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


write(
    "huge_png/a/x.png",
    b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(b"\0" * 100))
    + chunk(b"IEND", b""),
)
write("text_png/a/x.png", "this is not an image\n")
os.makedirs(os.path.join(out, "empty_folder/a"), exist_ok=True)


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


tensor = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
write("cut.safetensors", safetensors({"w": tensor}, bytes(10)))
write("huge_header.safetensors", struct.pack("<Q", 1 << 60) + b"{}")
write("text.safetensors", safetensors(b"[1, 2, 3]"))
write("huge_shape.safetensors", safetensors({"w": dict(tensor, shape=[1 << 40, 1 << 40])}, bytes(16)))
write("other.safetensors", safetensors({"w": tensor}, bytes(16)))
