#!/usr/bin/env bash
# Tables of rows by key: a run on ids near 2^62 learns; its saved model, its checkpoints and its ONNX
# file predict what paddle-eval measures, also for ids that training has not met; the summary names
# the tables; what cannot have tables is rejected before the first step; damaged tables are rejected.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(3)
users = [sign * 2**62 + 1000003 * i for sign in (-1, 1) for i in range(20)]
effect = {user: random.gauss(0, 1) for user in users}
def rows(file, count, some):
    with open(file, "w") as f:
        f.write("user,item,y\n")
        for i in range(count):
            user, item = some[i % len(some)], random.randrange(-3, 4)
            f.write(f"{user},{item},{effect.get(user, 0) + 0.3 * item:.4f}\n")
rows("train.csv", 400, users)
rows("valid.csv", 50, users[:23] + [7, -9])  # 7 and -9 are unknown
P
cat > c.yaml <<'Y'
model:
  name: pair
  inputs: {user: "int64[batch]", item: "int64[batch, 1]"}
  model: |
    u = sparse_embedding(user, 4, name="user", weight_init=normal(0, 0.1))
    i = reshape(sparse_embedding(item, 4, name="item"), [batch, 4])
    prediction = squeeze(linear(concat([u, i], 1), 1), [1])
  outputs: [prediction]
loss: mse_loss(prediction, y)
optimizer: {name: adam, lr: 0.05}
data:
  batch_size: 20
  train: &rows
    kind: csv
    path: train.csv
    fields:
      - {name: user, scalar: true, dtype: int64}
      - {name: item, dtype: int64}
      - {name: y, scalar: true, dtype: float32}
  valid: {kind: csv, path: valid.csv, fields: *fields}
train: {epochs: 20, evaluate_every: never, checkpoint_every: 5 epochs}
Y
sed -i 's/^    fields:$/    fields: \&fields/' c.yaml

ok "$train" c.yaml --dry-run
cat "$folder/out" "$folder/error" | grep -q "table user: 0 rows of float32\[4\]" || fail "--dry-run does not name the table"
ok "$bin/paddle-show" c.yaml
grep -q 'table user: a row of float32\[4\] for each key' out || fail "paddle-show does not name the table"
ok "$train" c.yaml --output run

ok "$bin/paddle-eval" run --data valid
cp out eval.json
for model in run run/model run/checkpoints/latest; do
  ok "$infer" "$model" --input valid.csv --output "$(tr / - <<< "$model").csv"
done
cmp -s run.csv run-model.csv && cmp -s run.csv run-checkpoints-latest.csv || fail "a checkpoint predicts something else"
ok "$bin/paddle-export" run --output net.onnx
ok "$bin/paddle-eval" net.onnx --config run/config.yaml --data valid
cp out onnx.json
ok "$bin/paddle-eval" run/checkpoints/latest --data valid
cp out checkpoint.json
python3 - <<'P' || fail "predictions, evaluation and ONNX differ: $(cat eval.json onnx.json checkpoint.json; head -3 run.csv)"
import csv, json
loss = json.load(open("eval.json"))["loss"]
rows = list(csv.DictReader(open("valid.csv")))
predictions = [float(next(v for k, v in row.items() if "prediction" in k)) for row in csv.DictReader(open("run.csv"))]
assert len(rows) == len(predictions) == 50
mean = sum((p - float(r["y"])) ** 2 for p, r in zip(predictions, rows)) / 50
known = [(p, float(r["y"])) for p, r in zip(predictions, rows) if abs(int(r["user"])) > 9]
assert sum((p - y) ** 2 for p, y in known) / len(known) < 0.01, "it learned nothing"
assert abs(mean - loss) < 1e-5 * max(loss, 1e-3), (mean, loss)
for other in ("onnx.json", "checkpoint.json"):
    assert abs(json.load(open(other))["loss"] - loss) < 1e-5 * max(loss, 1e-3), other
by_item = {}
for p, r in zip(predictions, rows):  # all unknown users have the same row
    if abs(int(r["user"])) <= 9:
        assert by_item.setdefault(r["item"], p) == p, r
P

# Stopping and resuming, and the rows of another run. Files whose tables are damaged or missing.
ok "$train" c.yaml --output cut train.epochs=1
ok "$train" --resume cut train.epochs=20
cmp -s run/model/model.safetensors cut/model/model.safetensors || fail "the resumed run ends with other rows"
ok "$train" c.yaml --output more train.epochs=1 "init={weights: run/model/model.safetensors}"
python3 - <<'P'
import json, struct
data = open("run/model/model.safetensors", "rb").read()
size = 8 + struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:size])
at = size + header["user.keys"]["data_offsets"][0]
open("swapped.safetensors", "wb").write(data[:at] + data[at + 8 : at + 16] + data[at : at + 8] + data[at + 16 :])
text = json.dumps({name.replace("user.", "other."): entry for name, entry in header.items()})
open("renamed.safetensors", "wb").write(struct.pack("<Q", len(text)) + text.encode() + data[size:])
P
expect 5 "expected distinct keys in rising order" "$train" c.yaml --output bad "init={weights: swapped.safetensors}"
expect 5 "lacks 'user.keys' of a sparse_embedding" \
  "$train" c.yaml --output bad "init={weights: renamed.safetensors, allow_unused: 'other.*'}"

# Rejections, each one line and before the first step.
rejected() { expect 3 "$1" "$train" c.yaml --output bad "${@:2}"; }
rejected "c.yaml:5:9: sparse_embedding: tables cannot be trained with averages of the weights" "train.ema={decay: 0.9}"
rejected "tables cannot be trained with precision float16" precision=float16
rejected "tables cannot be trained with optimizer.layer_decay" "optimizer={name: adam, layer_decay: 0.9}"
rejected "this optimizer reads the whole table in an update" optimizer=lamb
rejected "expected --device cpu" --device mirror
sed 's/^loss: .*/step: "update(mse_loss(prediction, y))"/' c.yaml > step.yaml
expect 3 "tables cannot be trained with a 'step:'; expected 'loss:'" "$train" step.yaml --output bad
sed 's/sparse_embedding(user, 4/sparse_embedding(user + 1, 4/' c.yaml > computed.yaml
expect 3 "x must be an input of the model that is a field of the data as it is" "$train" computed.yaml --output bad
sed 's/weight_init=normal(0, 0.1)/weight_init=xavier_uniform/' c.yaml > init.yaml
expect 3 "weight_init: xavier_uniform depends on the number of rows" "$train" init.yaml --output bad
[[ ! -e bad/metrics.jsonl ]] || fail "a rejected run has begun"
finish
