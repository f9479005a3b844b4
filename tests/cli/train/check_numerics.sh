#!/usr/bin/env bash
# --check-numerics of paddle-infer and paddle-train: counts against sums in Python.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
cd "$folder" || exit 1
cat > m.yaml <<'Y'
inputs: {x: "float32[batch, 4]"}
blocks:
  part(x): return log(x - 1)
model: |
  s = x * 2
  y = part(s)
  z = relu(y)
outputs: [z]
Y
python3 - <<'P'
import struct, zipfile
values = [0.5, 1.0, 3.0, 0.0, 8.0, 0.5, 0.5, 0.25]
header = repr({"descr": "<f4", "fortran_order": False, "shape": (2, 4)}).ljust(117) + "\n"
with zipfile.ZipFile("x.npz", "w") as file:
    file.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<8f", *values))
P
ok "$infer" m.yaml --input x.npz --check-numerics --json
cp out infer.txt
python3 - <<'P' || fail "paddle-infer: $(cat infer.txt)"
import json, math
found = json.loads(open("infer.txt").read().splitlines()[-1])
rows = {v["value"]: v for v in found["values"]}
x = [0.5, 1.0, 3.0, 0.0, 8.0, 0.5, 0.5, 0.25]
s = [2 * v for v in x]
y = [math.nan if v < 1 else -math.inf if v == 1 else math.log(v - 1) for v in s]
for name, values in (("s", s), ("y", y)):
    row = rows[name]
    finite = [abs(v) for v in values if math.isfinite(v)]
    assert row["elements"] == 8 and row["nan"] == sum(map(math.isnan, values)), row
    assert row["infinite"] == sum(map(math.isinf, values)) and row["zeros"] == values.count(0), row
    assert abs(row["largest"] - max(finite)) < 1e-5, row
assert rows["y"]["operation"] == "part.log" and rows["y"]["type"] == "float32[2, 4]", rows["y"]
assert found["values"][-1]["value"] == "z" and found["samples"] == 2, found
assert found["nan"] > 0 and found["infinite"] >= 3, found
P
grep -q "^value .*NaN" infer.txt || fail "no table: $(cat infer.txt)"
expect 2 "prints a table" "$infer" m.yaml --input x.npz --check-numerics --output y.npz
cat > c.yaml <<'Y'
model:
  inputs: {image: "float32[batch, 1, 28, 28]"}
  outputs: [logits]
  model: |
    h = linear(flatten(image), 16, name="first")
    a = relu(h)
    logits = linear(a * scale, 10, name="head")
  params: {scale: 1.0}
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 50
  train: {kind: digits, size: 300, range: [0, 200]}
  transforms: [{scale: {fields: image, factor: 0.00392157}}]
train: {epochs: 1}
Y
ok "$train" c.yaml --check-numerics --json
cp out train.txt
[[ ! -e runs ]] || fail "--check-numerics has written a run"
python3 - <<'P' || fail "paddle-train: $(cat train.txt)"
import json
found = json.loads(open("train.txt").read().splitlines()[-1])
assert found["step"] == 1, found
rows = {(v["layer"], v["pass"]): v for v in found["layers"]}
first = rows["first", "forward"]
assert first["elements"] == 50 * 16 and first["nan"] == first["infinite"] == 0, first
assert first["largest"] > 0 and first["largest_in"] == "linear", first
assert any(p == "backward" for _, p in rows), rows
assert all(v["nan"] + v["infinite"] == 0 for v in rows.values()), rows
P
ok "$train" c.yaml model.params.scale=1e38 --check-numerics --json
python3 -c 'import json
found = json.loads(open("out").read().splitlines()[-1])
assert sum(v["nan"] + v["infinite"] for v in found["layers"]) > 0, found' || fail "no infinities: $(cat out)"
ok "$train" c.yaml --output run
ok "$train" --resume run --check-numerics
head -1 out | grep -qE "^step ([2-9]|[1-9][0-9])$" || fail "with --resume: $(cat out)"
finish
