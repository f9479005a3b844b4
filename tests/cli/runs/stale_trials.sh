#!/usr/bin/env bash
# A finished trial of a sweep counts only for the same settings, files and data; two sweeps do not
# run in one folder.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cd "$folder" || exit 1
says() { grep -qF -- "$1" out || fail "it does not say '$1': $(head -c 600 out)"; }
{
  echo x,y
  for i in $(seq 1 100); do echo "$(((i * 37) % 101 - 50)),$(((i * 37) % 101 > 50 ? 1 : 0))"; done
} > d.csv
cat > m.yaml <<'Y'
params: {width: 8}
inputs: {x: "float32[batch, 1]"}
model: |
  logits = linear(relu(linear(x, width)), 2)
outputs: [logits]
Y
cat > c.yaml <<'Y'
model: m.yaml
loss: cross_entropy(logits, label)
optimizer: {name: adamw, lr: 1e-2}
data:
  batch_size: 8
  train: {kind: csv, path: d.csv, range: [0, 80], fields: &f [{name: x}, {name: label, columns: y, kind: categorical, scalar: true}]}
  valid: {kind: csv, path: d.csv, range: [80, 100], fields: *f}
train: {epochs: 1}
Y
# sweep OPTION…: the epochs of the first trial's last run, and whether it was trained.
sweep() {
  ok "$bin/paddle-sweep" c.yaml optimizer.lr=1e-3,1e-2 "$@"
  trained="$(grep -c 'is trained again' out)"
}
first=runs/c-sweep/000-lr=1e-3
epochs() { sed -n 's/^ *epochs: //p' $first/config.yaml; }
sweep
before="$(cat $first/metrics.jsonl | cksum)"
sweep
[[ "$trained" == 0 && "$(cat $first/metrics.jsonl | cksum)" == "$before" ]] || fail "the same command trained again"
sweep train.epochs=3
[[ "$trained" == 2 && "$(epochs)" == 3 ]] || fail "other fixed settings: $trained trained, $(epochs) epochs"
sweep train.epochs=3 params.width=16
[[ "$trained" == 2 ]] || fail "another parameter: $trained trained"
sed -i 's/batch_size: 8/batch_size: 16/' c.yaml
sweep train.epochs=3 params.width=16
[[ "$trained" == 2 ]] || fail "an edited config: $trained trained"
sed -i 's/relu/gelu/' m.yaml
sweep train.epochs=3 params.width=16
[[ "$trained" == 2 ]] || fail "an edited model file: $trained trained"
sed -i '50s/.*/7,1/' d.csv
sweep train.epochs=3 params.width=16
[[ "$trained" == 2 ]] || fail "other data: $trained trained"
sweep train.epochs=3 params.width=16
[[ "$trained" == 0 ]] || fail "nothing has changed: $trained trained"
ok "$train" c.yaml train.epochs=3 params.width=16 optimizer.lr=1e-3 --output alone
cmp -s alone/model/model.safetensors $first/model/model.safetensors || fail "a trial is another run than its settings"
exec 9> runs/c-sweep/.lock
flock 9
expect 2 "another sweep is running in this folder" "$bin/paddle-sweep" c.yaml optimizer.lr=1e-3,1e-2
exec 9>&-

# A resumed run keeps its name, and its curves have each step once.
ok "$train" c.yaml --output mine --until 50%
ok "$train" --resume mine
grep -q '<h1>c' mine/report.html || fail "the report of a resumed run: $(grep -o '<h1>[^<]*' mine/report.html)"
grep -q '"name": "c"' mine/model/model.json || fail "the name of a resumed model"
sed -i '/^name:/d' mine/config.yaml
ok "$train" --resume mine train.epochs=2
grep -q '"name": "c"' mine/model/model.json || fail "the name of a run of an older version"

# Steps that a resumed run takes again: TensorBoard drops what it has of them at the start of a
# session, as its loader does with SessionLog.START.
ok "$train" c.yaml --output twice train.epochs=3 train.checkpoint_every=4 train.keep_checkpoints=9 train.log_every=1
rm -rf "twice/checkpoints/$(ls twice/checkpoints | grep -v latest | sort -n | tail -1)" twice/checkpoints/latest
ok "$train" --resume twice
python3 - <<'P' || fail "the curves of a resumed run"
import glob, struct
def fields(data):
    at = 0
    def varint():
        nonlocal at
        out = shift = 0
        while True:
            byte = data[at]
            at += 1
            out |= (byte & 127) << shift
            shift += 7
            if byte < 128: return out
    while at < len(data):
        key = varint()
        if key & 7 == 0: yield key >> 3, varint()
        elif key & 7 == 2:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size
        else:
            size = 8 if key & 7 == 1 else 4
            yield key >> 3, data[at:at + size]
            at += size
curves, starts = {}, 0
files = sorted(glob.glob("twice/tensorboard/events.out.tfevents.*"))
for name in files:
    data = open(name, "rb").read()
    at = 0
    while at < len(data):
        size = struct.unpack("<Q", data[at:at + 8])[0]
        event = dict(fields(data[at + 12:at + 12 + size]))
        at += size + 16
        step = event.get(2, 0)
        if 7 in event and dict(fields(event[7])).get(1) == 1:
            starts += 1
            curves = {tag: [s for s in steps if s < step] for tag, steps in curves.items()}
        if 5 in event:
            tag = dict(fields(dict(fields(event[5]))[1]))[1].decode()
            curves.setdefault(tag, []).append(step)
assert len(files) == 2 and starts == 1
assert curves["train/loss"] == list(range(1, 16)), curves["train/loss"]
P

# paddle eval: the training data, a file, and the best of several models.
quiet 0 "$bin/paddle-eval" mine --data train
{ head -1 d.csv; sed -n '82,101p' d.csv; } > other.csv
ok "$bin/paddle-eval" mine --data other.csv
sed 's/"data":"[^"]*"//; s/"model":"[^"]*"//' out > file
ok "$bin/paddle-eval" mine
sed 's/"data":"[^"]*"//; s/"model":"[^"]*"//' out > valid
cmp -s file valid || fail "a file is not evaluated as the validation data: $(cat file valid)"
expect 2 "the data is of kind csv, expected a file" "$bin/paddle-eval" mine --data runs
cat > g.yaml <<'Y'
models:
  g: {inputs: {z: "float32[batch, 1]"}, model: "return linear(z, 4)\n", outputs: [y]}
  d: {inputs: {x: "float32[batch, 4]"}, model: "return linear(x, 1)\n", outputs: [y]}
step: |
  score = d(x=g(z=z))
  update(mean(square(score - y)), optimizer="both")
metrics: {err: "mae(score, y)"}
optimizers: {both: {name: adam, lr: 0.02}}
data:
  batch_size: 16
  train: &t {kind: csv, path: d.csv, fields: [{name: z, columns: [x], scaling: standard}, {name: y}]}
  valid: *t
train: {epochs: 3, best: err}
Y
ok "$train" g.yaml
ok "$bin/paddle-eval" runs/g/best
says '"err":'
best="$(python3 -c "
import json
print(min(l['err'] for l in map(json.loads, open('runs/g/metrics.jsonl')) if l['kind'] == 'valid'))")"
grep -qF "\"err\":$best" out || fail "the best of several models: $best, found $(cat out)"
finish
