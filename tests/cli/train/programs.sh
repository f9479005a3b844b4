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

# Training programs of paddle.static.save: the forward pass in inference mode (make_training.py). An
# output may be any value of the program; the labels are then no input of the model.
cat > equal.py << 'P'
import struct, sys, zipfile

def read(path, name):
    raw = zipfile.ZipFile(path).read(name + ".npy")
    size = struct.unpack("<H", raw[8:10])[0]
    assert b"'<f4'" in raw[10:10 + size]
    return struct.unpack(f"<{(len(raw) - 10 - size) // 4}f", raw[10 + size:])

found, wanted = read(*sys.argv[1:3]), read(*sys.argv[3:5])
worst = max(abs(a - b) for a, b in zip(found, wanted))
print(f"differs by {worst}")
sys.exit(len(found) != len(wanted) or worst > 1e-5)
P
for form in pir program; do
  file="$data/training_$form.json" loss=output_0 logits=add_1_out
  [[ $form == pir ]] || file="$data/training_$form.pdmodel" loss=sqrt_0.tmp_0 logits=linear_3.tmp_1
  ok "$infer" "$file" --input "$data/training_$form.npz" --output "loss_$form.npz"
  python3 equal.py "loss_$form.npz" "$loss" "$data/training_${form}_out.npz" loss || fail "$form: another loss than PaddlePaddle's"
  cat > "training_$form.yaml" << Y
model: {program: $file, outputs: {logits: $logits}}
loss: cross_entropy(logits, y)
optimizer: {name: adam, lr: 0}
data: {train: {kind: npz, path: $data/training_$form.npz}, batch_size: 12}
train: {steps: 10, log_every: 1}
Y
  sed "s/{logits: $logits}/{loss: $loss}/; s/^loss: .*/loss: loss/" "training_$form.yaml" > "own_$form.yaml"
  ok "$train" "training_$form.yaml"
  ok "$infer" "runs/training_$form/model" --input "$data/training_$form.npz" --output "logits_$form.npz"
  python3 equal.py "logits_$form.npz" logits "$data/training_${form}_out.npz" logits || fail "$form: other logits than PaddlePaddle's"
  ok "$train" "own_$form.yaml" optimizer.lr=0.01
  python3 - "runs/own_$form" << 'P' || fail "$form: the program's own loss does not fall"
import json, sys
losses = [line["loss"] for line in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")) if line["kind"] == "train"]
sys.exit(not losses[-1] < 0.95 * losses[0])
P
done
cp "$data/training_pir.json" lacking.json
cp "$data/continued/adam.pdparams" lacking.pdparams
expect 5 "lacking.pdparams: has no parameter 'batch_norm1d_0.b_0'" "$infer" lacking.json --input "$data/training_pir.npz"

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
