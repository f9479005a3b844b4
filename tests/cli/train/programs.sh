#!/usr/bin/env bash
# Fine-tuning of programs that PaddlePaddle saved, in both forms: the losses are PaddlePaddle's own
# (tests/paddle_program/make_finetuning.py); parameters keep their names; frozen ones stay.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
data="$PWD/tests/paddle_program/data"
cd "$folder" || exit 1

config() {  # FILE OUTPUT
  cat << Y
model: {program: $data/$1, inputs: {image: in0}, outputs: {logits: "$2"}}
loss: cross_entropy(logits, label)
optimizer: {name: momentum, lr: 0.02, momentum: 0.9}
data: {train: {kind: npz, path: $data/finetuning.npz}, batch_size: 4, shuffle: false}
train: {epochs: 3, log_every: 1}
Y
}
compare() {
  python3 - "$1" "$data/finetuning.json" << 'P' || fail "$1: other losses than PaddlePaddle's"
import json, sys
found = [line["loss"] for line in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")) if line["kind"] == "train"]
wanted = json.load(open(sys.argv[2]))
sys.exit(not (len(found) == len(wanted) and all(abs(a - b) < 2e-4 for a, b in zip(found, wanted))))
P
}
config swin_pir.json fetch_name_0 > pir.yaml
config swin_program.pdmodel linear_9.tmp_1_1 > pb.yaml
for form in pir pb; do
  ok "$train" $form.yaml
  compare runs/$form
done
ok "$train" pir.yaml --output frozen 'frozen=["*"]' train.epochs=1
expect 2 "has no output 'fetch_nam' (did you mean 'fetch_name_0'?)" "$train" pir.yaml --output x 'model.outputs={logits: fetch_nam}'
expect 2 "no such file" "$train" pir.yaml --output x model.program=nothing.json
