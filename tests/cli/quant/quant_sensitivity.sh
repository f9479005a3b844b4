#!/usr/bin/env bash
# paddle-quant by gradients of the loss: the change of the loss to first order, in 'sensitivity' and
# in searches.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
quant="$bin/paddle-quant"

# One layer and a mean squared error, whose gradient is known: the change follows from the results of
# the float model and of the quantized one.
cat > "$folder/line.yaml" <<'Y'
name: line
inputs: {x: "float32[batch, 24]"}
model:
  - linear: 3
outputs: [y]
Y
cat > "$folder/train.yaml" <<Y
name: line
model: line.yaml
loss: mse_loss(y, target)
optimizer: {name: sgd, lr: 0.01}
data:
  batch_size: 10
  train: {kind: npz, path: rows.npz}
train: {epochs: 2}
Y
python3 - "$folder/rows.npz" <<'P'
import random, struct, sys, zipfile
random.seed(3)
def npy(shape):
    header = str({"descr": "<f4", "fortran_order": False, "shape": shape})
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    n = shape[0] * shape[1]
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
            + struct.pack(f"<{n}f", *(random.gauss(0, 1) for _ in range(n))))
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("x.npy", npy((50, 24)))
    z.writestr("target.npy", npy((50, 3)))
P
ok "$train" "$folder/train.yaml" --output "$folder/line"
four=(quant.measure=false "quant.weights={dtype: int4, per: channel}")
ok "$quant" "$folder/line" -o "$folder/line.onnx" --data train --write-anyway "${four[@]}"
# 20 at a time: a short last batch counts by its samples.
ok "$quant" sensitivity "$folder/line" --by gradient --batch 20 --json "${four[@]}"
tail -n 1 "$folder/out" > "$folder/found.json"
for model in line line.onnx; do
  ok "$infer" "$folder/$model" --input "$folder/rows.npz" --output "$folder/$model.npz"
done
python3 - "$folder" <<'P' || fail "the change of a mean squared error"
import json, re, struct, sys, zipfile
folder = sys.argv[1]
def rows(file, name):
    data = zipfile.ZipFile(f"{folder}/{file}").read(name + ".npy")
    size = struct.unpack("<H", data[8:10])[0]
    shape = [int(n) for n in re.search(rb"'shape': \(([^)]*)\)", data[10:10 + size]).group(1).split(b",") if n.strip()]
    flat = struct.unpack(f"<{(len(data) - 10 - size) // 4}f", data[10 + size:])
    return [flat[i:i + shape[1]] for i in range(0, len(flat), shape[1])]
y, q, t = rows("line.npz", "y"), rows("line.onnx.npz", "y"), rows("rows.npz", "target")
expected = sum(abs(sum(2 / 3 * (b - d) * (c - b) for b, c, d in zip(*row))) for row in zip(y, q, t)) / len(y)
[layer] = json.load(open(folder + "/found.json"))["layers"]
assert expected > 1e-4 and abs(layer["loss_change"] / expected - 1) < 1e-3, (layer, expected)
P

# A deeper net: the order is much like that of the noise in the output, which runs each layer on its own.
cat > "$folder/deep.yaml" <<'Y'
name: deep
inputs: {image: "float32[batch, 1, 28, 28]"}
model: |
  x = max_pool2d(relu(batch_norm(conv2d(image, 16, 3, padding=1))), 2)
  y = relu(batch_norm(conv2d(x, 16, 3, padding=1)))
  x = relu(x + conv2d(y, 16, 3, padding=1))
  x = relu(conv2d(x, 32, 3, stride=2, padding=1))
  y = relu(conv2d(x, 8, 1))
  x = relu(x + conv2d(y, 32, 3, padding=1))
  x = relu(conv2d(x, 32, 3, stride=2, padding=1))
  x = relu(linear(flatten(x, 1), 64))
  logits = linear(relu(linear(x, 32)), 10)
outputs: [logits]
Y
ok "$train" configs/quickstart/digits.yaml model="$folder/deep.yaml" --output "$folder/deep" train.epochs=1 \
  "data.train={kind: digits, size: 6000, seed: 1, range: [0, 5000]}" \
  "data.valid={kind: digits, size: 6000, seed: 1, range: [5000, 6000]}"
for by in sqnr gradient; do
  ok "$quant" sensitivity "$folder/deep" --by "$by" --json "${four[@]}"
  tail -n 1 "$folder/out" > "$folder/$by.json"
done
python3 - "$folder" <<'P' || fail "the order of layers"
import json, sys
layers = lambda by, key: [l[key] for l in json.load(open(f"{sys.argv[1]}/{by}.json"))["layers"]]
def ranks(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    return [order.index(i) for i in range(len(values))]
a, b = ranks(layers("gradient", "loss_change")), ranks([-v for v in layers("sqnr", "output_sqnr_db")])
n = len(a)
spearman = 1 - 6 * sum((x - y) ** 2 for x, y in zip(a, b)) / (n * (n * n - 1))
assert n == 10 and spearman >= 0.8, (spearman, a, b)
P

# A search in that order, whose report and progress have the changes.
searched=("$quant" "$folder/deep" "${four[@]}" quant.accept.sqnr_db=24
          "quant.search={sensitivity: gradient, budget: {trials: 20}}")
ok "${searched[@]}" -o "$folder/searched"
python3 - "$folder" <<'P' || fail "the search by gradients"
import json, sys
folder = sys.argv[1]
report, progress = (json.load(open(f"{folder}/searched/{n}.json")) for n in ("report", "progress"))
changes = {l["name"]: l["loss_change"] for l in json.load(open(folder + "/gradient.json"))["layers"]}
order = [l["name"] for l in progress["order"]]
assert order == sorted(changes, key=lambda name: -changes[name]), (order, changes)
kept = [l for l in report["layers"] if "on its own it changes the loss by" in l["why"]]
assert report["accepted"] and 0 < len(kept) < 10, report["layers"]
assert {l["name"] for l in kept} == set(order[:len(kept)]), (kept, order)
assert all(l["loss_change"] > 0 for l in report["layers"]), report["layers"]
assert "Change of the loss" in open(folder + "/searched/report.html").read()
P

expect 3 "has no config with a loss" "$quant" sensitivity models/lenet.yaml --by gradient \
  --data configs/quickstart/digits.yaml:valid
expect 3 "has no config with a loss" "$quant" models/lenet.yaml -o "$folder/x" quant.accept.sqnr_db=400 \
  --data configs/quickstart/digits.yaml:valid "quant.search={sensitivity: gradient}"
expect 3 "which files do not have" "$quant" sensitivity "$folder/line" --by gradient \
  --data "$folder/rows.npz"
expect 3 "quant.search.sensitivity" "$quant" "$folder/deep" -o "$folder/x" \
  "quant.search={sensitivity: gradients}"
expect 2 "--by" "$quant" sensitivity "$folder/deep" --by loss
[[ ! -e "$folder/x" ]] || fail "a rejected call left something"
finish
