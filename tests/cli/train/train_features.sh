#!/usr/bin/env bash
# Early stopping, best/, averaged weights, a limit of time, initial weights, class weights, samplers
# and plateaus: what a run does with them, what resuming keeps, and what is rejected.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
evaluate="$bin/paddle-eval"
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(3)
with open("d.csv", "w") as f:
    f.write("a,b,label\n")
    for i in range(240):
        a, b = random.gauss(0, 1), random.gauss(0, 1)
        f.write(f"{a:.4f},{b:.4f},{int(a + 0.3 * b > 1.0)}\n")
P
cat > c.yaml <<'Y'
model:
  inputs: {x: "float32[batch, 2]"}
  model: |
    logits = linear(tanh(linear(x, 8, name="hidden")), 2, name="head")
  outputs: [logits]
loss: cross_entropy(logits, label)
metrics: {accuracy: "accuracy(logits, label)"}
optimizer: {name: adam, lr: 0.02}
data:
  batch_size: 32
  train:
    kind: csv
    path: d.csv
    fields: &fields
      - {name: x, columns: [a, b]}
      - {name: label, scalar: true, dtype: int64}
    split: {train: 0.8, valid: 0.2}
    part: train
  valid: {kind: csv, path: d.csv, fields: *fields, split: {train: 0.8, valid: 0.2}, part: valid}
train: {epochs: 6, log_every: 10}
Y

# A metric that cannot improve ends the run after patience evaluations; best/ is the first model.
ok "$train" c.yaml --output early optimizer.lr=0 'train.early_stop={metric: accuracy, patience: 2}'
grep -q "stopped early at step 18: accuracy has not improved for 2 evaluations" out || fail "no early stop"
[[ -f early/best/model.safetensors && -f early/model/model.safetensors ]] || fail "no best/"
ok "$train" --resume early
grep -q "stopped early" out || fail "a resumed run forgets that it has ended"
[[ "$(grep -c '"valid"' early/metrics.jsonl)" == 3 ]] || fail "a resumed run evaluates again"
ok "$train" --resume early train.early_stop.patience=4
[[ "$(grep -c '"valid"' early/metrics.jsonl)" == 5 ]] || fail "more patience does not continue"

# Another metric starts over.
ok "$train" c.yaml --output again optimizer.lr=0 'train.early_stop={metric: accuracy, patience: 2}' train.epochs=12
ok "$train" --resume again train.early_stop.metric=loss
grep -q "stopped early at step 36" out || fail "another metric does not start over: $(tail -3 out)"

# The best model is that of its evaluation.
ok "$train" c.yaml --output best train.best=accuracy
ok "$evaluate" best/best
python3 - <<'P' || fail "best/ is not the best evaluation"
import json
line = json.load(open("out"))
valid = [l for l in map(json.loads, open("best/metrics.jsonl")) if l.get("kind") == "valid"]
best = max(valid, key=lambda l: (l["accuracy"], -l["step"]))
assert line["accuracy"] == best["accuracy"] and line["loss"] == best["loss"], (line, best)
P

# Averaged weights: evaluation, model/ and checkpoints use them; resuming has the same bits.
ok "$train" c.yaml --output ema 'train.ema={decay: 0.9}'
ok "$evaluate" ema
cp out whole.json
ok "$evaluate" ema/checkpoints/latest
python3 - <<'P' || fail "evaluating averaged weights"
import json
valid = [l for l in map(json.loads, open("ema/metrics.jsonl")) if l.get("kind") == "valid"]
for name in ("whole.json", "out"):
    line = json.load(open(name))
    assert line["loss"] == valid[-1]["loss"], (name, line, valid[-1])
P
ok "$train" c.yaml --output part 'train.ema={decay: 0.9}' train.epochs=3
ok "$train" --resume part train.epochs=6
cmp -s ema/model/model.safetensors part/model/model.safetensors || fail "resumed averages differ"
ok "$train" c.yaml --output plain
cmp -s ema/model/model.safetensors plain/model/model.safetensors && fail "averages are not used"
ok "$train" c.yaml --output eager 'train.ema={decay: 0.9}' --eager compile.exact=true
ok "$train" c.yaml --output free 'optimizer={name: schedule_free_adamw, lr: 0.02}'
ok "$evaluate" free
python3 - <<'P' || fail "evaluating schedule-free weights"
import json
valid = [l for l in map(json.loads, open("free/metrics.jsonl")) if l.get("kind") == "valid"]
assert json.load(open("out"))["loss"] == valid[-1]["loss"]
P

# The equal average of late weights: the mean of the weights after 4, 5 and 6 epochs.
ok "$train" c.yaml --output swa 'train.swa={start: 4 epochs}'
ok "$evaluate" swa
python3 - <<'P' || fail "evaluating an equal average"
import json
valid = [l for l in map(json.loads, open("swa/metrics.jsonl")) if l.get("kind") == "valid"]
plain = [l for l in map(json.loads, open("plain/metrics.jsonl")) if l.get("kind") == "valid"]
assert json.load(open("out"))["loss"] == valid[-1]["loss"] != plain[-1]["loss"]
assert [l["loss"] for l in valid[:4]] == [l["loss"] for l in plain[:4]]  # before the average begins
P
ok "$train" c.yaml --output swa_part 'train.swa={start: 4 epochs}' --until 29
ok "$train" --resume swa_part
cmp -s swa/model/model.safetensors swa_part/model/model.safetensors || fail "a resumed equal average differs"
# So is the mean of the last checkpoints of a run without it.
ok "$bin/paddle-average" plain --last 3
ok "$evaluate" plain/average
python3 - <<'P' || fail "the mean of checkpoints is not the equal average"
import json, struct
def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    out = {}
    for name, entry in header.items():
        if name == "__metadata__": continue
        begin, end = entry["data_offsets"]
        out[name] = struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])
    return out
a, b = read("swa/model/model.safetensors"), read("plain/average/model.safetensors")
assert set(a) == set(b) and len(a) == 4
for name in a:
    assert all(abs(x - y) <= 1e-6 * max(1, abs(x)) for x, y in zip(a[name], b[name], strict=True)), name
P
expect 2 "already exists" "$bin/paddle-average" plain
ok "$bin/paddle-average" plain --overwrite
mkdir -p own && echo mine > own/notes.txt
expect 2 "is not a model folder" "$bin/paddle-average" plain --output own --overwrite
expect 2 "fewer than --last 9" "$bin/paddle-average" plain --last 9 --output nine
expect 2 "has 0 checkpoints" "$bin/paddle-average" nowhere
[[ ! -e nine ]] || fail "a rejected average leaves a folder"
expect 3 "give one of ema and swa" "$train" c.yaml --dry-run 'train.swa={start: 1}' 'train.ema={}'
expect 3 "expected 'N' or 'N epochs', found 'never'" "$train" c.yaml --dry-run 'train.swa={start: never}'
expect 3 "train.swa.every: expected" "$train" c.yaml --dry-run 'train.swa={start: 1, every: 2 days}'

# Files of weights and ONNX files are evaluated with a config.
ok "$evaluate" plain
cp out of_run.json
ok "$evaluate" plain/model/model.safetensors --config c.yaml
cp out of_weights.json
ok "$bin/paddle-export" plain -o plain.onnx
ok "$evaluate" plain.onnx --config c.yaml
python3 - <<'P' || fail "evaluating files: $(cat of_run.json of_weights.json out)"
import json
a, b, c = (json.load(open(name)) for name in ("of_run.json", "of_weights.json", "out"))
assert a["loss"] == b["loss"] and a["intervals"] == b["intervals"]
assert abs(a["loss"] - c["loss"]) < 1e-6 and a["accuracy"] == c["accuracy"]
P
expect 2 "needs --config" "$evaluate" plain/model/model.safetensors
expect 2 "has a config of its own" "$evaluate" plain --config c.yaml
expect 2 "expected a run, a model folder" "$evaluate" d.csv --config c.yaml
expect 5 "missing" "$evaluate" plain/model/model.safetensors --config c.yaml 'model.model="logits = linear(x, 2, name=\"other\")"'

# A limit of time ends the run whole: evaluated, with its model.
ok "$train" c.yaml --output timed train.max_time=0.001 train.epochs=1000
grep -q "after train.max_time" out || fail "no limit of time"
[[ -f timed/model/model.safetensors ]] || fail "no model after max_time"
[[ "$(grep -c '"valid"' timed/metrics.jsonl)" == 1 ]] || fail "no evaluation after max_time"

# Initial weights by name, and a head that is not in the file.
ok "$train" c.yaml --output tuned optimizer.lr=0 train.epochs=1 init.weights=plain/model
cmp -s plain/model/model.safetensors tuned/model/model.safetensors || fail "init does not load"
cat > map.yaml <<'Y'
- {match: '^hidden\.', rename: 'body.'}
- {drop: '^head\.'}
Y
sed 's/name="hidden"/name="body"/; s/tanh/relu/' c.yaml > other.yaml
ok "$train" other.yaml --output mapped 'init={weights: plain/model/model.safetensors, map: map.yaml, allow_missing: "head.*"}'
expect 5 "'head.bias' is missing" "$train" other.yaml --output mapped2 'init={weights: plain/model/model.safetensors, map: map.yaml}'
expect 2 "none.pth" "$train" c.yaml --output x init.weights=none.pth

# Class weights and samplers.
ok "$train" c.yaml --output weighted 'data.class_weights={field: label}' 'loss=cross_entropy(logits, label, weight=class_weights)'
ok "$evaluate" weighted
ok "$train" c.yaml --output sampled 'data.sampler={kind: balanced, field: label}' train.epochs=2
ok "$train" c.yaml --output part2 'data.sampler={kind: balanced, field: label}' train.epochs=1
ok "$train" --resume part2 train.epochs=2
cmp -s sampled/model/model.safetensors part2/model/model.safetensors || fail "resumed draws differ"

# Rates that fall on plateaus.
ok "$train" c.yaml --output flat optimizer.lr=0.5 'schedule={name: reduce_on_plateau, metric: accuracy, patience: 0, factor: 0.5}'
grep -q "learning rate 0\.[0-9]*" out || fail "no reduction"

expect 3 "'acuracy' is neither 'loss' nor a metric" "$train" c.yaml --output x 'train.early_stop={metric: acuracy}'
expect 3 "train.early_stop needs data.valid" "$train" c.yaml --output x train.early_stop.patience=2 train.evaluate_every=never
expect 3 "expected seconds or a time" "$train" c.yaml --output x train.max_time=soon
expect 3 "train.ema.decay" "$train" c.yaml --output x train.ema.decay=1.5
expect 3 "did you mean 'lion'" "$train" c.yaml --output x optimizer.name=lyon
finish
