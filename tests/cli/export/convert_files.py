"""Files for convert.sh and checks of what comes out, with only Python's standard library.

convert_files.py FOLDER write
convert_files.py FOLDER same A B | shards INDEX WHOLE MOST | types A B | mapped A B | names A NAME…
"""

import ast
import io
import json
import os
import struct
import sys
import zipfile

sys.dont_write_bytecode = True  # keep the source tree free of caches
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from protobuf import field

folder, command, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
CODES = {"F32": ("<f4", "f", 4), "F64": ("<f8", "d", 8), "I64": ("<i8", "q", 8), "U8": ("|u1", "B", 1),
         "BOOL": ("|b1", "?", 1), "F16": ("<f2", "e", 2), "BF16": (None, "H", 2)}
BY_DESCR = {code[0]: name for name, code in CODES.items() if code[0]}


def count(shape):
    out = 1
    for d in shape:
        out *= d
    return out


def pack(kind, values):
    return struct.pack(f"<{len(values)}{CODES[kind][1]}", *values)


def npy(descr, shape, data, fortran=False):
    header = str({"descr": descr, "fortran_order": fortran, "shape": tuple(shape)}).encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def write_npz(path, arrays, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as z:
        for name, (kind, shape, values) in arrays.items():
            z.writestr(name + ".npy", npy(CODES[kind][0], shape, pack(kind, values)))


def write_safetensors(path, tensors, metadata=None):
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (kind, shape, values) in tensors.items():
        content = pack(kind, values)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    with open(path, "rb") as f:
        content = f.read()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    out = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        kind = entry["dtype"]
        data = content[8 + length + begin : 8 + length + end]
        out[name] = (kind, entry["shape"], list(struct.unpack(f"<{count(entry['shape'])}{CODES[kind][1]}", data)))
    return out, metadata


def read_npz(path):
    out = {}
    with zipfile.ZipFile(path) as z:
        assert z.testzip() is None
        for entry in z.namelist():
            data = z.read(entry)
            length = struct.unpack("<H", data[8:10])[0]
            header = ast.literal_eval(data[10 : 10 + length].decode())
            kind = BY_DESCR[header["descr"]]
            assert not header["fortran_order"]
            values = struct.unpack(f"<{count(header['shape'])}{CODES[kind][1]}", data[10 + length :])
            out[entry.removesuffix(".npy")] = (kind, list(header["shape"]), list(values))
    return out


def read(path):
    return read_npz(path) if path.endswith(".npz") else read_safetensors(path)[0]


def onnx_tensor(name, number, dims, raw=None, more=b""):
    out = b"".join(field(1, d) for d in dims) + field(2, number) + field(8, name.encode())
    return out + (field(9, raw) if raw is not None else more)


def write_onnx(path):
    """Initializers in every form: raw, in a typed field, in another file, and strings."""
    external = struct.pack("<3f", 7, 8, 9)
    with open(os.path.join(os.path.dirname(path), "outside.bin"), "wb") as f:
        f.write(b"\0" * 64 + external)
    entries = (("location", "outside.bin"), ("offset", "64"), ("length", "12"))
    place = b"".join(field(13, field(1, k.encode()) + field(2, v.encode())) for k, v in entries)
    tensors = [
        onnx_tensor("raw", 1, [2, 2], struct.pack("<4f", 1, 2, 3, 4)),
        onnx_tensor("typed", 7, [3], more=field(7, 5) + field(7, 6) + field(7, 7)),
        onnx_tensor("outside", 1, [3], more=place + field(14, 1)),
        onnx_tensor("large", 1, [100], struct.pack("<100f", *range(100))),
    ]
    graph = field(2, b"g") + b"".join(field(5, t) for t in tensors)
    with open(path, "wb") as f:
        f.write(field(1, 8) + field(7, graph) + field(8, field(1, b"") + field(2, 17)))
    write_npz(path.replace("model.onnx", "onnx_expected.npz"), {
        "raw": ("F32", [2, 2], [1, 2, 3, 4]), "typed": ("I64", [3], [5, 6, 7]),
        "outside": ("F32", [3], [7, 8, 9]), "large": ("F32", [100], list(range(100)))})


RUN = """
model:
  inputs: {x: "float32[batch, 2]"}
  model: [{linear: 3}]
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: adam, lr: 0.1}
data:
  batch_size: 8
  train: {kind: npz, path: rows.npz}
train: {epochs: 1}
"""


def write():
    at = lambda name: os.path.join(folder, name)
    plain = {
        "steps": ("I64", [2], [7, -(1 << 62)]),
        "block.0.bias": ("F32", [3], [0.1 * 3, -0.0, 1e-30]),
        "block.0.weight": ("F32", [3, 4], [i / 7 for i in range(12)]),
        "block.1.weight": ("F32", [2, 3, 2], [i / 3 for i in range(12)]),
        "empty": ("F32", [0, 5], []),
        "scalar": ("F32", [], [2.5]),
        "flag": ("BOOL", [3], [True, False, True]),
    }
    plain["half.one"] = ("F16", [2], [0.5, 2.0])
    order = sorted(plain, key=lambda n: (-CODES[plain[n][0]][2], n))
    write_safetensors(at("plain.safetensors"), {n: plain[n] for n in order})
    write_safetensors(at("half.safetensors"), {"h": ("BF16", [2], [0x3FC0, 0xC000])}, {"format": "pt"})
    write_npz(at("half_as_float.npz"), {"h": ("F32", [2], [1.5, -2.0])})
    write_npz(at("packed.npz"), {"p": ("F64", [50], [1.0] * 50), "q": ("U8", [2, 2], [1, 2, 3, 255])}, zipfile.ZIP_DEFLATED)
    write_npz(at("big.npz"), {"big": ("F32", [4], [1e6, -1e6, 0.1, 1.0])})
    write_npz(at("large.npz"), {"large": ("F32", [20000], [1.0] * 20000)})
    write_npz(at("rows.npz"), {"x": ("F32", [24, 2], [i / 9 for i in range(48)]), "label": ("I64", [24], [i % 3 for i in range(24)])})
    write_onnx(at("model.onnx"))
    with zipfile.ZipFile(at("strings.npz"), "w") as z:
        z.writestr("s.npy", npy("<U2", (2,), "ab".encode("utf-32-le") * 2))
        z.writestr("x.npy", npy("<f4", (1,), struct.pack("<f", 1)))
    with zipfile.ZipFile(at("objects.npz"), "w") as z:
        z.writestr("o.npy", npy("|O", (2,), b"\x80\x04" * 8))
    with open(at("bad.npz"), "wb") as f:
        f.write(bytes(range(256)))
    for name, files in (("escaping", {"x": "../plain.safetensors"}), ("swapped", {n: "plain.safetensors" for n in plain if n != "flag"} | {"flag": "half.safetensors"})):
        with open(at(name + ".safetensors.index.json"), "w") as f:
            json.dump({"metadata": {}, "weight_map": files}, f)
    for name, text in {
        "rules": "- {match: '^block\\.(\\d+)\\.', rename: 'blocks.$1.'}\n- {match: 'weight$', rename: w}\n"
                 "- {drop: '^(empty|half)'}\n- {name: steps, rename: training.steps}\n"
                 "- {transpose: '^blocks\\.0\\.w$'}\n- {transpose: '^blocks\\.1', perm: [2, 0, 1]}\n",
        "idle": "- {match: '^nothing', rename: x}\n- {drop: half}\n",
        "same": "- {match: '^block.*', rename: x}\n",
        "wrong": "- {match: a,\n  renam: b}\n",
        "group": "- {match: '(a)', rename: '$2'}\n",
        "expression": "- {drop: '('}\n",
        "exact": "- {name: block.0.wieght, rename: x}\n",
        "run": RUN,
    }.items():
        with open(at(name + ".yaml"), "w") as f:
            f.write(text)


def bits(tensor):
    kind, shape, values = tensor
    return kind, shape, pack(kind, values)


def transposed(tensor, perm):
    kind, shape, values = tensor
    strides = [count(shape[i + 1 :]) for i in range(len(shape))]
    out = [shape[p] for p in perm]
    result = []
    for flat in range(count(out)):
        index, rest = [], flat
        for d in reversed(out):
            index.insert(0, rest % d)
            rest //= d
        result.append(values[sum(i * strides[p] for i, p in zip(index, perm))])
    return kind, out, result


def main():
    if command == "write":
        return write()
    os.chdir(folder)
    first = arguments[0]
    if command == "same":
        a, b = read(first), read(arguments[1])
        a = {n: t for n, t in a.items() if n in b or not n.startswith("half")}
        assert set(a) == set(b), (set(a), set(b))
        for name in a:
            assert bits(a[name]) == bits(b[name]), (name, a[name], b[name])
    elif command == "shards":
        with open(first) as f:
            index = json.load(f)
        whole, found = read(arguments[1]), {}
        for file in sorted(set(index["weight_map"].values())):
            part = read(file)
            sizes = [len(pack(kind, values)) for kind, _, values in part.values()]
            assert sum(sizes) <= int(arguments[2]) or len(sizes) == 1, (file, sizes)
            assert all(index["weight_map"][n] == file for n in part)
            found.update(part)
        assert {n: bits(t) for n, t in found.items()} == {n: bits(t) for n, t in whole.items()}
        assert index["metadata"]["total_size"] == sum(len(pack(k, v)) for k, _, v in whole.values())
        assert len(set(index["weight_map"].values())) > 1
    elif command == "types":
        a, b = read(first), read(arguments[1])
        for name, (kind, shape, values) in b.items():
            wanted = "F64" if name.startswith("block.0.") else "F16" if kind == "F32" else kind
            assert a[name][:2] == (wanted, shape), (name, a[name])
            assert pack(wanted, values) == pack(wanted, a[name][2]), name
    elif command == "mapped":
        a, b = read(first), read(arguments[1])
        assert set(a) == {"training.steps", "blocks.0.bias", "blocks.0.w", "blocks.1.w", "scalar", "flag"}, set(a)
        assert bits(a["blocks.0.w"]) == bits(transposed(b["block.0.weight"], [1, 0]))
        assert bits(a["blocks.1.w"]) == bits(transposed(b["block.1.weight"], [2, 0, 1]))
        assert bits(a["training.steps"]) == bits(b["steps"])
    elif command == "names":
        assert sorted(read(first)) == sorted(arguments[1:]), sorted(read(first))
    else:
        raise SystemExit(f"unknown command {command}")


main()
