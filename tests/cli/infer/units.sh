#!/usr/bin/env bash
# Predictions, metrics, the libraries and exported files speak in the units of the data files, and
# predictions carry the label that the loss compares them with.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cd "$folder" || exit 1
# y is 1000 + 50 x, z is 3 x, w is y with a deviation of 20: so predictions must be near them.
python3 - <<'P'
import random
random.seed(0)
with open("d.csv", "w") as f:
    f.write("x,c,y,z,w\n")
    for i in range(200):
        x = random.gauss(0, 1)
        f.write(f"{x:.4f},{'ab'[i % 2]},{1000 + 50 * x:.4f},{3 * x:.4f},{1000 + 50 * x + random.gauss(0, 20):.4f}\n")
P
cat > c.yaml <<'Y'
model:
  inputs: {x: "float32[batch, 1]"}
  model: |
    p = linear(x, 2)
    s = exp(linear(x, 1, name="spread"))
    middle = p[:, 0:1]
  outputs: [p, s, middle]
loss: mse_loss(p[:, 0], y)
metrics: {mae: "mae(p[:, 0], y)"}
optimizer: {name: adam, lr: 0.05}
data:
  batch_size: 50
  train:
    kind: csv
    path: d.csv
    fields:
      - {name: x}
      - {name: c, kind: categorical}
      - {name: y, scalar: true, scaling: standard}
      - {name: z, scalar: true, scaling: standard}
      - {name: w, scalar: true, scaling: standard}
  valid: {kind: csv, path: d.csv, range: [0, 50], fields: [{name: x}, {name: c, kind: categorical}, {name: y, scalar: true, scaling: standard}, {name: z, scalar: true, scaling: standard}, {name: w, scalar: true, scaling: standard}]}
train: {epochs: 60, evaluate_every: 60 epochs}
Y
# check LOSS TEST: trains with the loss; TEST is python over the rows (r) with their line of the file.
check() {
  ok "$bin/paddle-train" c.yaml "loss=$1" --output "$3" --threads 1
  ok "$bin/paddle-infer" "$3" --data valid --output "$3.jsonl" --quiet
  python3 - "$2" "$3.jsonl" <<'P' || fail "$1: $(head -c 300 "$3.jsonl")"
import csv, json, math, sys
rows = list(csv.DictReader(open("d.csv")))
for r in map(json.loads, open(sys.argv[2])):
    line = {k: float(v) for k, v in rows[r["row"]].items() if k != "c"}
    y, z = line["y"], line["z"]
    near = lambda a, b, e=3: abs(a - b) < e
    assert eval(sys.argv[1]), (r, line)
P
}
check "mse_loss(p[:, 0], y)" 'near(r["p"][0], y) and abs(r["p"][1]) < 20 and near(r["middle"][0], y) and near(r["label"], y, 1e-3)' indexed
check "mse_loss(squeeze(p[:, 0:1], 1), y)" 'near(r["p"][0], y)' squeezed
check "mean(square(y - p[:, 0]))" 'near(r["p"][0], y) and near(r["label"], y, 1e-3)' subtracted
check "mse_loss(p[:, 0], y) + mse_loss(p[:, 1], z)" 'near(r["p"][0], y) and near(r["p"][1], z, 0.3)' two
# Standard deviations and variances are in the units of the file, too.
check "gaussian_nll_loss(p[:, 0], w, square(s[:, 0]))" 'near(r["p"][0], y, 20) and 10 < r["s"][0] < 40' spread
check "mean(log(s[:, 0]) + square((w - p[:, 0]) / s[:, 0]) / 2)" 'near(r["p"][0], y, 20) and 10 < r["s"][0] < 40' divided
check "-mean(normal(p[:, 0], s[:, 0]).log_prob(w))" 'near(r["p"][0], y, 20) and 10 < r["s"][0] < 40' likelihood
check "gaussian_nll_loss(p[:, 0], w, s[:, 0])" 'near(r["p"][0], y, 20) and 100 < r["s"][0] < 1600' variance
check "gaussian_nll_loss(p[:, 0], w, exp(p[:, 1]))" 'near(r["p"][0], y, 20) and 4.6 < r["p"][1] < 7.4' logarithm

# An ONNX file with preprocessing takes and gives the numbers of the data file.
python3 - <<'P'
import struct, zipfile
def npy(shape, values):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}f", *values)
with zipfile.ZipFile("x.npz", "w") as z: z.writestr("x.npy", npy((3, 1), [0.5, -1, 2]))
P
for run in indexed two spread; do
  ok "$bin/paddle-export" $run -o $run.onnx --with-preprocess
  grep -q "agrees" out || fail "the check of $run.onnx: $(cat out)"
  ok "$bin/paddle-infer" $run.onnx --input x.npz --output $run.exported.jsonl
  ok "$bin/paddle-infer" $run --input x.npz --output $run.own.jsonl
  python3 - $run <<'P' || fail "$run.onnx has other units: $(head -1 $run.exported.jsonl) and $(head -1 $run.own.jsonl)"
import json, sys
read = lambda name: [json.loads(line) for line in open(sys.argv[1] + name)]
for a, b in zip(read(".exported.jsonl"), read(".own.jsonl")):
    for key in ("p", "s", "middle"):
        assert all(abs(u - v) <= 1e-3 * (1 + abs(v)) for u, v in zip(a[key], b[key])), (key, a, b)
P
done

# Categories of a vocabulary are texts there; an unscaled series goes in, a forecast in its units
# comes out.
cat > v.yaml <<'Y'
model:
  inputs: {x: "float32[batch, 1]", c: "int64[batch, 1]"}
  model: |
    p = linear(x, 1) + embedding(c, 2, 1)[:, 0]
  outputs: [p]
loss: mse_loss(p[:, 0], y)
optimizer: {name: adam, lr: 0.05}
data:
  batch_size: 50
  train: &t {kind: csv, path: d.csv, fields: [{name: x, scaling: standard}, {name: c, kind: categorical}, {name: y, scalar: true, scaling: standard}]}
  valid: *t
train: {epochs: 5}
Y
ok "$bin/paddle-train" v.yaml
ok "$bin/paddle-export" runs/v -o v.onnx --with-preprocess
grep -q "agrees" out || fail "the check of categories: $(cat out)"
grep -qa LabelEncoder v.onnx || fail "categories are not texts in the file"
sed 's/kind: categorical}/kind: categorical, buckets: 2}/' v.yaml > hashed.yaml
ok "$bin/paddle-train" hashed.yaml --output hashed
ok "$bin/paddle-export" hashed -o hashed.onnx --with-preprocess
cat out error | grep -q "takes the numbers of hash buckets" || fail "no word about hashed categories: $(cat out error)"
python3 - <<'P'
import math
open("s.csv", "w").write("t,v\n" + "".join(f"{i},{500 + i + 40 * math.sin(i / 2):.2f}\n" for i in range(120)))
P
ok "$bin/paddle-new" time-series --data s.csv -o s.yaml --small
ok "$bin/paddle-train" s.yaml train.epochs=2
ok "$bin/paddle-export" runs/s -o s.onnx --with-preprocess
grep -q "agrees" out || fail "the check of a series: $(cat out)"
finish
