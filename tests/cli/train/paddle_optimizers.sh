#!/usr/bin/env bash
# Runs that continue one of PaddlePaddle with its optimizer's states (init.optimizer): losses and
# weights are those of PaddlePaddle's own next updates (tests/paddle_program/make_continued.py).
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
data="$PWD/tests/paddle_program/data"
cd "$folder" || exit 1

printf '%s\n' "- {match: '^(weight|bias)\$', rename: 'linear.\$1'}" > names.yaml
cat > base.yaml << Y
model: {inputs: {x: "float32[batch, 4]"}, model: [{linear: 3}], outputs: [p]}
loss: mean(square(p - y))
data: {train: {kind: npz, path: $data/continued.npz}, batch_size: 8}
train: {epochs: 9, log_every: 1}
Y
config() {  # NAME OPTIMIZER [SCHEDULE]
  cat << Y
extends: base.yaml
init: {weights: $data/continued/$1.pdparams, map: names.yaml, optimizer: $data/continued/$1.pdopt}
optimizer: {name: $1, $2}
Y
  [[ -z "${3:-}" ]] || echo "schedule: {$3}"
}
decay="name: exponential, gamma: 0.9"
config adam "lr: 0.05" "$decay" > adam.yaml
config adamw "lr: 0.05, weight_decay: 0.1" "name: step, step_size: 3, gamma: 0.5" > adamw.yaml
config adamax "lr: 0.05" > adamax.yaml
config momentum "lr: 0.05, momentum: 0.9" "$decay" > momentum.yaml
config adagrad "lr: 0.1" > adagrad.yaml
config adadelta "lr: 1.0" > adadelta.yaml
config rmsprop "lr: 0.02, momentum: 0.5, centered: true" > rmsprop.yaml
config lamb "lr: 0.02, weight_decay: 0.01" > lamb.yaml
config nadam "lr: 0.02" > nadam.yaml
config radam "lr: 0.02" > radam.yaml
config rprop "lr: 0.02" > rprop.yaml
config sgd "lr: 0.05" "$decay" > sgd.yaml

for name in adam adamw adamax momentum adagrad adadelta rmsprop lamb nadam radam rprop sgd; do
  # Files without a schedule and powers of beta do not say how many updates were made.
  keys=()
  [[ " adagrad adadelta rmsprop rprop " != *" $name "* ]] || keys=(init.updates=5)
  ok "$train" "$name.yaml" "${keys[@]}"
  grep -q "the run continues after update 5 with" "$folder/out" "$folder/error" || fail "$name: the number of updates is missing"
  ! grep -q warning "$folder/error" || fail "$name: a warning"
  python3 - "runs/$name" "$data/continued.json" "$name" << 'P' || fail "$name: not what PaddlePaddle computes"
import json, struct, sys
wanted = json.load(open(sys.argv[2]))[sys.argv[3]]
lines = [line for line in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")) if line["kind"] == "train"]
good = [line["step"] for line in lines] == [6, 7, 8, 9]
good = good and all(abs(line["loss"] - loss) < 2e-5 for line, loss in zip(lines, wanted["losses"]))
data = open(sys.argv[1] + "/model/model.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
for name, values in wanted["weights"].items():
    begin, end = (8 + size + at for at in header["linear." + name]["data_offsets"])
    found = struct.unpack(f"<{len(values)}f", data[begin:end])
    good = good and max(abs(a - b) for a, b in zip(found, values)) < 2e-5
if not good:
    print([line["loss"] for line in lines], wanted["losses"])
sys.exit(not good)
P
done

# The run has checkpoints of its own.
ok "$train" adam.yaml --output stopped train.epochs=7 train.checkpoint_every=1
ok "$train" --resume stopped train.epochs=9
python3 - stopped runs/adam << 'P' || fail "a resumed run differs"
import sys
sys.exit(not all(open(sys.argv[1] + f, "rb").read() == open(sys.argv[2] + f, "rb").read() for f in ["/model/model.safetensors"]))
P

expect 0 "the learning rate of PaddlePaddle was 0.0295245" "$train" adam.yaml --output rate optimizer.lr=0.01
expect 3 "of a run after 5 updates, this one has 4 in all" "$train" adam.yaml --output few train.epochs=4
expect 5 "has no states of 'adagrad' for linear.bias (linear_4.b_0), linear.weight (linear_4.w_0)" "$train" adagrad.yaml --output other "init.optimizer=$data/continued/adam.pdopt"
expect 3 "PaddlePaddle's files have no states for 'lion'" "$train" adam.yaml --output lion optimizer.name=lion
head -c 300 "$data/continued/adam.pdopt" > cut.pdopt
expect 5 "cut.pdopt" "$train" adam.yaml --output cut init.optimizer=cut.pdopt
expect 5 "cannot open" "$train" adam.yaml --output none init.optimizer=none.pdopt
sed "s#, optimizer: [^}]*#, updates: 3#" adam.yaml > updates.yaml
expect 3 "updates.yaml:2:" "$train" updates.yaml
grep -q "init.updates: has no effect without .optimizer." "$folder/error" || fail "init.updates without init.optimizer"
finish
