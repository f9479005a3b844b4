#!/usr/bin/env bash
# --dump: values inside of a model, of trained models and ONNX files, against sums in Python.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
cd "$folder" || exit 1
cat > c.yaml <<'Y'
model:
  inputs: {image: "float32[batch, 1, 28, 28]"}
  outputs: [logits]
  model: |
    h = linear(flatten(image), 16, name="first")
    a = relu(h)
    logits = linear(a, 10, name="head")
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 50
  train: {kind: digits, size: 300, range: [0, 200]}
  valid: {kind: digits, size: 300, range: [200, 300]}
  transforms: [{scale: {fields: image, factor: 0.00392157}}]
train: {epochs: 1}
Y
ok "$train" c.yaml --output run
cat > npz.py <<'P'
"""Reads and writes NPZ files of float32 arrays without NumPy: flat lists and shapes."""
import ast
import io
import struct
import zipfile


def load(path):
    out = {}
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            data = file.read(name)
            size = struct.unpack("<H", data[8:10])[0]
            header = ast.literal_eval(data[10:10 + size].decode())
            assert header["descr"] in ("<f4", "<i8"), (name, header)
            values = data[10 + size:]
            form = "f" if header["descr"] == "<f4" else "q"
            out[name.removesuffix(".npy")] = (header["shape"], struct.unpack(f"<{len(values) // struct.calcsize(form)}{form}", values))
    return out


def save(path, name, shape, values):
    header = repr({"descr": "<f4", "fortran_order": False, "shape": shape})
    header = header.ljust(117) + "\n"
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(name + ".npy", data + struct.pack(f"<{len(values)}f", *values))
P
python3 - <<'P'
import random
import npz
random.seed(0)
npz.save("x.npz", "image", (70, 1, 28, 28), [random.random() for _ in range(70 * 784)])
P
ok "$infer" run --input x.npz --dump a --dump 'first.*' --output y.npz
ok "$infer" run --input x.npz --output logits.npz
"$bin/paddle-export" run -o m.onnx > /dev/null 2>&1 || fail "paddle-export"
ok "$infer" m.onnx --input x.npz --dump '*' --output onnx.npz
python3 - <<'P' || fail "dumped values are wrong"
import json
import struct
import npz
data = open("run/model/model.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
w = {}
for name, t in json.loads(data[8:8 + size]).items():
    if name != "__metadata__":
        a, b = (8 + size + at for at in t["data_offsets"])
        w[name] = (t["shape"], struct.unpack(f"<{(b - a) // 4}f", data[a:b]))
shape, weight = w["first.weight"]
assert shape == [784, 16], shape
bias = w["first.bias"][1]
x = npz.load("x.npz")["image"][1]
hidden = [max(0, bias[j] + sum(x[r * 784 + i] * weight[i * 16 + j] for i in range(784)))
          for r in range(70) for j in range(16)]


def close(a, b):
    return len(a) == len(b) and all(abs(x - y) < 1e-4 for x, y in zip(a, b))


y = npz.load("y.npz")
assert set(y) == {"a", "h", "logits"}, list(y)
assert y["a"][0] == (70, 16) and close(y["a"][1], hidden), "a"
assert close(y["logits"][1], npz.load("logits.npz")["logits"][1]), "logits"
onnx = npz.load("onnx.npz")
assert any(close(values, hidden) for shape, values in onnx.values()), list(onnx)
P
expect 2 "no value of the model matches 'firts.*'" "$infer" run --input x.npz --dump 'firts.*' --output z.npz
expect 2 "give --output FILE.npz" "$infer" run --input x.npz --dump a
expect 2 "already exists (--overwrite replaces it)" "$infer" run --input x.npz --dump a --output y.npz
ok "$infer" run --input x.npz --dump a --output y.npz --overwrite
"$infer" run --input x.npz --dump '*' --output none.npz --dry-run > names.txt
grep -qx a names.txt || fail "--dry-run does not list the names: $(cat names.txt)"
"$infer" run --dump '*' --dry-run > names2.txt
cmp names.txt names2.txt || fail "--dry-run needs neither an input nor an output"
[[ ! -e none.npz ]] || fail "--dry-run has written a file"
