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
config swin_program.pdmodel linear_9.tmp_1 > pb.yaml
for form in pir pb; do
  ok "$train" $form.yaml
  compare runs/$form
done
ok "$train" pir.yaml --output frozen 'frozen=["*"]' train.epochs=1
expect 3 "has no output 'fetch_nam' (did you mean 'fetch_name_0'?)" "$train" pir.yaml --output x 'model.outputs={logits: fetch_nam}'
expect 3 "no such file" "$train" pir.yaml --output x model.program=nothing.json

# One step of plain gradient descent: all parameters are PaddlePaddle's afterwards (make_gradients.py).
cat > gradients.yaml << Y
model: {program: $data/gradients_pir.json, inputs: {in0: in0}, outputs: {y: fetch_name_0}}
loss: mean(square(y))
optimizer: {name: sgd, lr: 0.5}
data: {train: {kind: npz, path: $data/gradients.npz}, batch_size: 4, shuffle: false}
train: {epochs: 1, log_every: 1}
Y
ok "$train" gradients.yaml
python3 - runs/gradients/model/model.safetensors "$data/gradients.json" << 'P' || fail "gradients: other parameters than PaddlePaddle's"
import json, struct, sys
data, wanted = open(sys.argv[1], "rb").read(), json.load(open(sys.argv[2]))["after"]
size = struct.unpack("<Q", data[:8])[0]
header, good = json.loads(data[8:8 + size]), True
for name, values in wanted.items():
    begin, end = (8 + size + at for at in header[name]["data_offsets"])
    found = struct.unpack(f"<{len(values)}f", data[begin:end])
    worst = max(abs(a - b) for a, b in zip(found, values))
    if worst > 2e-5:
        print(f"{name} differs by {worst}")
        good = False
sys.exit(not (good and len(wanted) == 16))
P
finish
