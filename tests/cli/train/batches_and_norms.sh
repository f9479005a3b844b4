#!/usr/bin/env bash
# Before the first step: batches of a size that the model does not accept, and normalization over one
# value, are rejected. Frozen layers keep their statistics. A run in float64 takes its rates in
# float64.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
python3 - "$folder" <<'P'
import random, sys
random.seed(2)
with open(sys.argv[1] + "/rows.csv", "w") as f:
    f.write("a,b,label\n")
    for i in range(33):
        f.write(f"{random.gauss(3, 2):.4f},{random.gauss(-1, 5):.4f},{i % 2}\n")
P
config() {
  cat > "$folder/$1.yaml" <<Y
model:
  inputs: {x: "float32[$2, 2]"}
  model: |
    return $3
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 16
  train:
    kind: csv
    path: rows.csv
    fields: [{name: x, columns: [a, b]}, {name: label, scalar: true, dtype: int64}]
train: {epochs: 2, evaluate_every: never}
Y
}

config stated 16 "linear(x, 2)"
expect 3 "the model takes batches of 16 samples, the last batch of data.train has 1 of the 33 samples: set data.drop_last to true" \
  "$train" "$folder/stated.yaml" --output "$folder/rejected"
expect 3 "set data.batch_size to 16" "$train" "$folder/stated.yaml" data.batch_size=8 --output "$folder/rejected"
expect 3 "set data.batch_size to 32" "$train" "$folder/stated.yaml" data.batch_size=16 train.accumulate=2 --output "$folder/rejected"
quiet 0 "$train" "$folder/stated.yaml" data.drop_last=true --overwrite --output "$folder/run"
quiet 0 "$train" "$folder/stated.yaml" train.steps=2 train.epochs=0 --overwrite --output "$folder/run"
[[ ! -d "$folder/rejected/checkpoints" ]] || fail "a rejected run left a folder"

config batch_norm batch "linear(batch_norm(linear(x, 4)), 2)"
expect 3 "batch_norm: one value for each channel in a batch of 1 sample, as the last batch of data.train has 1 of the 33 samples" \
  "$train" "$folder/batch_norm.yaml" --output "$folder/rejected"
expect 3 "set a larger data.batch_size" "$train" "$folder/batch_norm.yaml" data.batch_size=1 --eager --output "$folder/rejected"
expect 3 "in a micro-batch of 1 sample" "$train" "$folder/batch_norm.yaml" data.batch_size=2 data.drop_last=true train.accumulate=2 --output "$folder/rejected"
quiet 0 "$train" "$folder/batch_norm.yaml" data.drop_last=true --overwrite --output "$folder/run"
config instance_norm batch "linear(reshape(instance_norm(unsqueeze(linear(x, 4), 2)), [batch, 4]), 2)"
expect 3 "instance_norm: one value for each channel of a sample" "$train" "$folder/instance_norm.yaml" --output "$folder/rejected"
config group_norm batch "linear(group_norm(linear(x, 4), 4), 2)"
expect 3 "group_norm: one value for each group of a sample's channels" "$train" "$folder/group_norm.yaml" --output "$folder/rejected"

# The statistics of a frozen layer are 0 and 1 for ever, those of another one move.
for frozen in "[batch_norm.*]" "[batch_norm.weight, batch_norm.bias]" "[linear.weight]"; do
  for mode in "" --eager; do
    "$train" "$folder/batch_norm.yaml" data.drop_last=true "frozen=$frozen" $mode --overwrite --output "$folder/run" > /dev/null 2> "$folder/error" || fail "frozen $frozen"
    python3 - "$folder/run/model/model.safetensors" "$frozen" <<'P' || fail "statistics with frozen $frozen $mode"
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
length = struct.unpack("<Q", raw[:8])[0]
entries, data = json.loads(raw[8:8 + length]), raw[8 + length:]
begin, end = entries["batch_norm.running_mean"]["data_offsets"]
mean = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
assert all(m == 0 for m in mean) == ("batch_norm" in sys.argv[2]), mean
P
  done
done

# One update of a single weight, by hand: the gradient of mean(w * 1) is 1.
printf 'x\n1\n1\n' > "$folder/ones.csv"
cat > "$folder/rate.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 1]"}
  model: |
    return linear(x, 1, bias=false, weight_init=ones)
  outputs: [y]
loss: mean(y)
optimizer: {name: sgd, lr: 0.1}
precision: float64
data: {batch_size: 2, train: {kind: csv, path: ones.csv, fields: [{name: x, columns: [x]}]}}
train: {epochs: 1}
Y
after() {
  local expected="$1"
  shift
  for mode in "" --eager; do
    "$train" "$folder/rate.yaml" "$@" $mode --overwrite --output "$folder/rate" > /dev/null 2> "$folder/error" || fail "$*"
    python3 - "$folder/rate/model/model.safetensors" "$expected" <<'P' || fail "$* $mode: the weight is not $expected"
import math, struct, sys
found = struct.unpack("<d", open(sys.argv[1], "rb").read()[-8:])[0]
expected = eval(sys.argv[2], {"sqrt": math.sqrt})
assert abs(found - expected) <= 4e-16, (found, expected)
P
  done
}
after "1 - 0.1" optimizer.lr=0.1
after "1 - 0.1 * (1 + 0.3)" optimizer.lr=0.1 optimizer.weight_decay=0.3
after "1 - 0.7 * 0.1" optimizer.lr=0.7 "clip={value: 0.1}"
after "1 - 0.7 * 0.1" optimizer.lr=0.7 "clip={global_norm: 0.1}"
after "1 - 0.1 - 0.1 * (1 + 0.7)" optimizer.name=momentum optimizer.lr=0.1 optimizer.momentum=0.7 train.epochs=2
after "1 - 0.1 / (1 + 1e-3)" optimizer.name=adam optimizer.lr=0.1 optimizer.beta1=0.7 optimizer.beta2=0.9 optimizer.epsilon=1e-3
finish
