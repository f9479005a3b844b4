#!/usr/bin/env bash
# A loss that is not finite: the message names the operation and the line that NaN or infinity comes
# from, --find-nonfinite finds it in a run, and train.on_nonfinite skips or rolls back.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(0)
with open("t.csv", "w") as f:
    f.write("a,b,y\n")
    for i in range(200):
        a, b = random.random(), random.random()
        a = -5 if i == 120 else a
        f.write(f"{a},{b},{a + 2 * b}\n")
P

# config FILE BODY...: a config whose model has these lines, from line 5 on.
config() {
  local file="$1" line
  shift
  {
    printf 'model:\n  inputs: {x: "float32[batch, 2]"}\n  outputs: [p]\n  model: |\n'
    for line in "$@"; do printf '    %s\n' "$line"; done
    cat <<'Y'
loss: mse_loss(p, y)
optimizer: {name: sgd, lr: 0.05}
data:
  train: {kind: csv, path: t.csv, fields: [{name: x, columns: [a, b]}, {name: y, columns: y}]}
  batch_size: 10
train: {epochs: 3, log_every: 20, checkpoint_every: 7}
Y
  } > "$file"
}

# The operation and the line of what was planted, at any depth, forward and backward.
n=0
planted() {  # EXPECTED BODY...
  local expected="$1"
  shift
  n=$((n + 1))
  config "m$n.yaml" "$@"
  expect 4 "$expected" "$train" "m$n.yaml" --output "run$n"
}
planted "'log' at m1.yaml:5:9 gave the first NaN" 'h = log(x + 1)' 'p = linear(batch_norm(h), 1)'
planted "'sqrt' at m2.yaml:6:9 gave the first NaN" \
  'h = relu(linear(x, 8))' 'h = sqrt(h - 0.001)' 'p = linear(h, 1)'
planted "'exp' at m3.yaml:6:9 gave the first infinity (" \
  'h = linear(x, 8)' 'h = exp(h * 1000 + 1000)' 'p = linear(h, 1)'
planted "'divide' at m4.yaml:7:11 gave the first NaN" \
  'h = relu(linear(x, 8))' 'z = h * 0' 'h = z / z' 'p = linear(h, 1)'
planted "'pow' at m5.yaml:6:13 gave the first NaN" \
  'h = linear(x, 8)' 'g = abs(pow(h, 0.5))' 'p = linear(g, 1) + mean(h)'
# The loss is finite, its gradient is not: 0 / 0 in the gradient of sqrt at 0.
planted "m6.yaml:6:9 (gradient) gave the first" \
  'h = linear(x, 8) * 0' 'h = sqrt(h * h)' 'p = linear(h, 1)'
# A mask with -inf is legitimate; a row in which everything is masked is an error.
planted "'softmax' at m7.yaml:7:9 gave the first NaN" \
  'h = linear(x, 4)' 'm = where(x[:, :1] > -2, h, -1e308 * 10)' 'h = softmax(m)' 'p = linear(h, 1)'

# In a run, from its newest checkpoint, with the lines of its own config.
"$train" --resume run1 --find-nonfinite > found.txt
[[ $? == 1 ]] || fail "--find-nonfinite: a status other than 1"
grep -q "^step 15: 'log' at run1/config.yaml" found.txt || fail "--find-nonfinite: $(cat found.txt)"
found="$("$train" --resume run1 --find-nonfinite --json 2> /dev/null)"
python3 -c '
import json, sys
found = json.loads(sys.argv[1])
assert found["found"] and found["operation"] == "log" and found["step"] == 15, found
assert found["nan"] == 1 and found["infinite"] == 0 and found["elements"] == 20, found
' "$found" || fail "--find-nonfinite --json: $found"
expect 2 "give --resume RUN" "$train" m1.yaml --find-nonfinite

# The update is left out; the weights and the running statistics stay finite.
ok "$train" m1.yaml --output skip train.on_nonfinite=skip
grep -q '"skipped_updates":3' skip/metrics.jsonl || fail "skipped updates are not counted"
python3 - <<'P' || fail "skip: weights or running statistics are not finite"
import json, math, struct
data = open("skip/model/model.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
for name, t in json.loads(data[8:8 + size]).items():
    if name != "__metadata__" and t["dtype"] == "F32":
        a, b = (8 + size + at for at in t["data_offsets"])
        assert all(map(math.isfinite, struct.unpack(f"<{(b - a) // 4}f", data[a:b]))), name
P
# Without NaN nothing changes.
sed 's/^-5,/0.5,/; s/^-5\.0,/0.5,/' t.csv > clean.csv
ok "$train" m1.yaml --output plain data.train.path=clean.csv
ok "$train" m1.yaml --output guarded data.train.path=clean.csv train.on_nonfinite=skip
cmp plain/model/model.safetensors guarded/model/model.safetensors || fail "skip changes a clean run"
# Every update fails: the run ends.
config all.yaml 'h = log(x * 0 - 1)' 'p = linear(h, 1)'
expect 4 "gradients are not finite in 20 updates in a row" \
  "$train" all.yaml --output all train.on_nonfinite=skip

# Back to the last checkpoint, and on with the data after the batch.
expect 0 "the loss is nan at step 15; the run continues from the checkpoint of step 14" \
  "$train" m1.yaml --output back train.on_nonfinite=rollback
expect 4 "the loss is nan at step 1" "$train" all.yaml --output none train.on_nonfinite=rollback

expect 3 "skip is not possible with train.accumulate" \
  "$train" m1.yaml --dry-run train.on_nonfinite=skip train.accumulate=2
expect 3 "rollback is not possible with train.checkpoint_every: never" \
  "$train" m1.yaml --dry-run train.on_nonfinite=rollback train.checkpoint_every=never
