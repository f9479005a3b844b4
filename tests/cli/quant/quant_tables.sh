#!/usr/bin/env bash
# Tables with rows in fewer bits: bytes and values are those of a recount, the report has the metrics
# of paddle-eval before and after, and the model predicts with the new rows.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
quant="$bin/paddle-quant"
cd "$folder" || exit 1
python3 - <<'P'
import math, random
random.seed(2)
taste = [random.gauss(0, 2) for _ in range(200)]
for name, count in (("data", 6000), ("valid", 2000)):
    with open(f"{name}.csv", "w") as f:
        f.write("user,label\n")
        for i in range(count):
            user = random.randrange(200)
            f.write(f"{user},{int(random.random() < 1 / (1 + math.exp(-taste[user])))}\n")
P
cat > c.yaml <<'Y'
model:
  name: ctr
  inputs: {user: "int64[batch]"}
  model: |
    logit = squeeze(linear(sparse_embedding(user, 16, name="user"), 1), [1])
  outputs: [logit]
loss: binary_cross_entropy_with_logits(logit, label)
metrics:
  auc: auc(logit, label)
optimizer: {name: adagrad, lr: 0.3}
data:
  batch_size: 200
  train: {kind: csv, path: data.csv, fields: &fields [{name: user, dtype: int64, scalar: true}, {name: label, scalar: true}]}
  valid: {kind: csv, path: valid.csv, fields: *fields}
train: {epochs: 3}
Y
ok "$train" c.yaml --output run
ok "$bin/paddle-eval" run
cp out exact.json
for dtype in int8 float16 bfloat16; do
  ok "$quant" tables run -o $dtype --dtype $dtype --json
  cp out $dtype.json
  ok "$bin/paddle-eval" $dtype/model
  cp out eval.json
  ok "$infer" $dtype/model valid.csv --output $dtype.jsonl
  ok "$bin/paddle-ps" verify $dtype/model
  python3 - $dtype <<'P' || fail "the report of $dtype: $(cat $dtype.json eval.json exact.json)"
import json, sys
dtype = sys.argv[1]
report, after, exact = (json.load(open(name)) for name in (f"{dtype}.json", "eval.json", "exact.json"))
assert json.load(open(f"{dtype}/report.json")) == report
rows = 200
assert report["bytes"] == {"before": rows * (8 + 64), "after": rows * (8 + (20 if dtype == "int8" else 32))}, report
for name in ("loss", "auc", "samples"):
    assert report["before"][name] == exact[name], name
    assert report["after"][name] == after[name], name
assert exact["auc"] > 0.8 and abs(after["auc"] - exact["auc"]) < 0.005
assert after["loss"] != exact["loss"] and abs(after["loss"] - exact["loss"]) < 0.01
P
done
# Each value of a row is within half a step of 1/127 of its largest one.
ok "$infer" run valid.csv --output exact.jsonl
python3 - <<'P' || fail "rows of int8"
import glob, json, struct
def tensors(path):
    data = open(path, "rb").read()
    size = 8 + struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, entry in json.loads(data[8:size]).items():
        begin, end = entry["data_offsets"]
        raw, kind = data[size + begin : size + end], {"I64": "q", "F32": "f", "I8": "b"}[entry["dtype"]]
        out[name] = struct.unpack(f"<{len(raw) // struct.calcsize(kind)}{kind}", raw)
    return out
exact = tensors("run/model/model.safetensors")
rows = {key: exact["user.weight"][16 * i : 16 * i + 16] for i, key in enumerate(exact["user.keys"])}
seen = 0
for path in glob.glob("int8/model/tables/user/base-*/*.safetensors"):
    t = tensors(path)
    for i, key in enumerate(t["keys"]):
        seen += 1
        scale, row = t["scale"][i], rows[key]
        assert abs(scale - max(map(abs, row)) / 127) <= 1e-6 * scale
        assert all(abs(q * scale - x) <= 0.5001 * scale for q, x in zip(t["weight"][16 * i : 16 * i + 16], row))
assert seen == 200
a, b = ([next(v for k, v in json.loads(line).items() if "logit" in k) for line in open(name)] for name in ("int8.jsonl", "exact.jsonl"))
assert 0 < max(abs(x - y) for x, y in zip(a, b)) < 0.1
P
expect 2 "int8: already exists" "$quant" tables run -o int8
ok "$quant" tables run/checkpoints/latest -o int8 --overwrite --no-check
sed 's/sparse_embedding(user, 16, name="user")/embedding(user, 200, 16)/' c.yaml > dense.yaml
ok "$train" dense.yaml --output dense train.epochs=1
expect 2 "has no rows of tables" "$quant" tables dense -o y
[[ ! -e y && ! -e y.unfinished ]] || fail "a failed command left a folder"
finish
