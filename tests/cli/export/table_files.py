"""Inputs of a model with tables, and the rows of its external tables, without NumPy.

table_files.py keys FILE.npz NAME=1,2,3 ...      int64 arrays of one axis, or of two with a trailing '/'
table_files.py rows FOLDER FILE.npz OUT.npz      FILE with the rows that FOLDER/tables.json asks for
"""

import bisect
import io
import json
import struct
import sys
import zipfile

FORMATS = {"int64": "q", "uint64": "Q", "float32": "f", "float64": "d"}
NUMPY = {"q": "<i8", "Q": "<u8", "f": "<f4", "d": "<f8"}


def npy(kind, shape, values):
    header = str({"descr": NUMPY[kind], "fortran_order": False, "shape": tuple(shape)}).encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    data = struct.pack(f"<{len(values)}{kind}", *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def write(path, arrays):
    with zipfile.ZipFile(path, "w") as z:
        for name, content in arrays.items():
            z.writestr(name + ".npy", content)


def read_npy(data):
    size = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10 : 10 + size])
    kind = {v: k for k, v in NUMPY.items()}[header["descr"]]
    body = data[10 + size :]
    return header["shape"], struct.unpack(f"<{len(body) // struct.calcsize(kind)}{kind}", body)


def tensors(path):
    data = open(path, "rb").read()
    size = 8 + struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, entry in json.loads(data[8:size]).items():
        kind = {"I64": "q", "U64": "Q", "F32": "f", "F64": "d"}[entry["dtype"]]
        begin, end = entry["data_offsets"]
        raw = data[size + begin : size + end]
        out[name] = struct.unpack(f"<{len(raw) // struct.calcsize(kind)}{kind}", raw)
    return out


def main():
    command, rest = sys.argv[1], sys.argv[2:]
    if command == "keys":
        arrays = {}
        for word in rest[1:]:
            name, values = word.split("=")
            keys = [int(v) for v in values.rstrip("/").split(",")]
            arrays[name] = npy("q", (len(keys), 1) if values.endswith("/") else (len(keys),), keys)
        return write(rest[0], arrays)
    folder, source, out = rest
    described = json.load(open(f"{folder}/tables.json"))
    with zipfile.ZipFile(source) as z:
        arrays = {name[:-4]: z.read(name) for name in z.namelist()}
    for each in described["inputs"]:
        table = described["tables"][each["table"]]
        content = tensors(f"{folder}/{table['file']}")
        keys, weight, width = content["keys"], content["weight"], table["width"]
        assert len(keys) == table["rows"] and list(keys) == sorted(set(keys))
        shape, wanted = read_npy(arrays[each["keys"]])
        rows = []
        for key in wanted:
            at = bisect.bisect_left(keys, key)
            known = at < len(keys) and keys[at] == key
            rows += weight[at * width : (at + 1) * width] if known else [0.0] * width
        arrays[each["input"]] = npy(FORMATS[table["dtype"]], list(shape) + [width], rows)
    write(out, arrays)


main()
