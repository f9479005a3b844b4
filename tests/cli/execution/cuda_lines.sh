#!/usr/bin/env bash
# Training on stand-ins for the driver and NVRTC, which run the kernels' text on the CPU: a
# convolutional network, residual blocks with batch normalization, an LSTM, tables with dense layers,
# a fine-tuned encoder and a GPT have the losses of the CPU, and the same bits whatever the order of
# streams; steps queue few kernels.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
fake="$bin/../fake_cuda"
[[ -e "$fake/libcuda.so.1" && -e "$fake/libnvrtc.so.13" ]] || { echo "the stand-ins are not built"; exit 77; }
export PADDLE_CUDA_LIBRARIES="$fake"

# line NAME MAXIMUM ARGUMENTS…: at most MAXIMUM kernels in the first step.
line() {
  local name="$1" most="$2"
  shift 2
  "$train" "$@" train.log_every=1 train.evaluate_every=never --output "$folder/$name-cpu" \
    > "$folder/out" 2> "$folder/error" || fail "$name on the CPU:"
  PADDLE_FAKE_CUDA_LOG="$folder/$name.log" "$train" "$@" train.log_every=1 train.evaluate_every=never \
    --device cuda --no-host-fallback --output "$folder/$name-cuda" > "$folder/out" 2> "$folder/error" || fail "$name on cuda:"
  PADDLE_FAKE_CUDA_SEED=11 "$train" "$@" train.log_every=1 train.evaluate_every=never \
    --device cuda --output "$folder/$name-again" > "$folder/out" 2> "$folder/error" || fail "$name again:"
  cmp -s "$folder/$name-cuda/model/model.safetensors" "$folder/$name-again/model/model.safetensors" ||
    fail "$name: another order of streams gives other weights:"
  python3 - "$folder" "$name" "$most" <<'P' || fail "$name: other losses, or too many kernels:"
import json, sys
folder, name, most = sys.argv[1:]
def losses(device):
    records = map(json.loads, open(f"{folder}/{name}-{device}/metrics.jsonl"))
    return [r["loss"] for r in records if r["kind"] == "train"]
cpu, cuda = losses("cpu"), losses("cuda")
assert len(cpu) == len(cuda) >= 3 and cpu[0] != cpu[-1], (cpu, cuda)
worst = max(abs(a - b) / max(abs(a), 1e-3) for a, b in zip(cpu, cuda))
launches = sum(int(l.split()[2]) for l in open(f"{folder}/{name}.log") if l.startswith("launch"))
print(f"{name}: worst relative difference {worst:.1e}, {launches / len(cpu):.0f} kernels in a step")
assert worst < 1e-4, worst
assert launches <= int(most) * len(cpu), launches
P
}

random() { printf '{kind: random, size: %s, fields: [%s]}' "$1" "$2"; }
label='{name: label, dtype: int64, low: 0, high: 10}'
line lenet 40 configs/bench/lenet.yaml data.batch_size=4 train.steps=4

cat > "$folder/residual.yaml" <<'Y'
model:
  inputs: {image: "float32[batch, 3, 12, 12]"}
  blocks:
    unit(x, channels, stride): |
      y = relu(batch_norm(conv2d(x, channels, 3, stride, 1, bias=false)))
      y = batch_norm(conv2d(y, channels, 3, 1, 1, groups=2, bias=false))
      return relu(y + batch_norm(conv2d(x, channels, 1, stride, bias=false)))
  model: |
    x = max_pool2d(relu(batch_norm(conv2d(image, 8, 5, 1, 2, bias=false))), 3, 2, 1)
    x = unit(unit(x, 16, 1), 24, 2)
    logits = linear(flatten(adaptive_avg_pool2d(x, 1)), 10)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: momentum, lr: 1e-2, momentum: 0.9, weight_decay: 1e-4}
data: {batch_size: 4, train: {kind: random, size: 16, fields: [{name: image, shape: [3, 12, 12]}, {name: label, dtype: int64, low: 0, high: 10}]}}
train: {steps: 4}
Y
line residual 80 "$folder/residual.yaml"
line lstm 200 configs/bench/lstm_lm.yaml params.vocab_size=60 params.width=12 data.batch_size=2 train.steps=4 \
  "data.train=$(random 8 '{name: tokens, dtype: int64, shape: [5], low: 0, high: 60}, {name: targets, dtype: int64, shape: [5], low: 0, high: 60}')"
line deepfm 120 configs/bench/deepfm.yaml params.rows=300 data.batch_size=8 train.steps=4 \
  "data.train=$(random 32 '{name: sparse, dtype: int64, shape: [26], low: 0, high: 300}, {name: dense, shape: [13]}, {name: label, low: 0, high: 1}')"
line bert 120 configs/bench/bert_base.yaml "params={layers: 2, heads: 2, width: 16, vocab_size: 50, positions: 16, classes: 2}" \
  data.batch_size=2 train.steps=4 \
  "data.train=$(random 8 '{name: tokens, dtype: int64, shape: [8], low: 0, high: 50}, {name: label, dtype: int64, low: 0, high: 2}')"
line gpt 400 configs/bench/gpt2_124m.yaml data.batch_size=2 train.steps=3 \
    "params={layers: 12, heads: 2, width: 16, vocab_size: 50, positions: 64}" \
    "data.train=$(random 8 '{name: tokens, dtype: int64, shape: [16], low: 0, high: 50}, {name: targets, dtype: int64, shape: [16], low: 0, high: 50}')"

# In bfloat16 losses are those of the CPU within its precision. Kernels that read and store what is
# cast around them give the bits of separate casts, and there are fewer.
gpt=(configs/bench/gpt2_124m.yaml precision=bf16 amp.level=O2 data.batch_size=2 train.steps=3 train.log_every=1
  train.evaluate_every=never "params={layers: 2, heads: 2, width: 16, vocab_size: 50, positions: 64}"
  "data.train=$(random 8 '{name: tokens, dtype: int64, shape: [16], low: 0, high: 50}, {name: targets, dtype: int64, shape: [16], low: 0, high: 50}')")
# gpt NAME ARGUMENTS…
gpt() {
  PADDLE_FAKE_CUDA_LOG="$folder/$1.log" "$train" "${gpt[@]}" "${@:2}" --output "$folder/gpt-$1" \
    > "$folder/out" 2> "$folder/error" || fail "gpt in bfloat16, $1:"
}
gpt host
gpt bf16 --device cuda
gpt fused --device cuda compile.exact=true
gpt apart --device cuda compile.exact=true "compile.leave_out=[fuse_conversions]"
cmp -s "$folder/gpt-fused/model/model.safetensors" "$folder/gpt-apart/model/model.safetensors" ||
  fail "casts in kernels change the weights:"
python3 - "$folder" <<'P' || fail "gpt in bfloat16: other losses, or kernels that are not saved:"
import json, sys
folder = sys.argv[1]
def losses(name):
    return [r["loss"] for r in map(json.loads, open(f"{folder}/gpt-{name}/metrics.jsonl")) if r["kind"] == "train"]
def launches(name):
    return sum(int(l.split()[2]) for l in open(f"{folder}/{name}.log") if l.startswith("launch"))
host, cuda = losses("host"), losses("bf16")
worst = max(abs(a - b) / a for a, b in zip(host, cuda))
print(f"gpt in bfloat16: worst relative difference {worst:.1e}; {launches('fused')} kernels, {launches('apart')} without fuse_conversions")
assert len(host) == len(cuda) == 3 and worst < 1e-3, (host, cuda)
assert launches("fused") < launches("apart")
P

# At full size kernels are counted and do not run.
PADDLE_FAKE_CUDA_IDLE=1 PADDLE_FAKE_CUDA_MEMORY=16000000000 PADDLE_FAKE_CUDA_LOG="$folder/launches" \
  "$train" configs/bench/resnet50.yaml train.steps=1 train.evaluate_every=never --device cuda \
  --output "$folder/resnet50" > "$folder/out" 2> "$folder/error" || fail "resnet50:"
launches="$(awk '/^launch/ { sum += $3 } END { print sum }' "$folder/launches")"
echo "resnet50: $launches kernels in a step"
((launches <= 450)) || fail "resnet50: $launches kernels"
rm -rf "$folder/resnet50"

# The memory that a step of GPT-2 124M in bfloat16 reads and writes.
PADDLE_FAKE_CUDA_IDLE=1 PADDLE_FAKE_CUDA_MEMORY=60000000000 "$bin/paddle-profile" configs/bench/gpt2_124m.yaml \
  precision=bf16 amp.level=O2 data.batch_size=16 --steps 1:2 --device cuda -o "$folder/profile" \
  "data.train=$(random 32 '{name: tokens, dtype: int64, shape: [1024], low: 0, high: 50304}, {name: targets, dtype: int64, shape: [1024], low: 0, high: 50304}')" \
  > "$folder/out" 2> "$folder/error" || fail "profile of gpt2:"
python3 - "$folder/profile/operations.csv" <<'P' || fail "gpt2 reads and writes too much:"
import csv, sys
megabytes = sum(float(row["bytes"] or 0) for row in csv.DictReader(open(sys.argv[1]))) / (16 * 1024) / 1e6
print(f"gpt2: {megabytes:.2f} MB for a token")
assert 1 < megabytes <= 2.6, megabytes
P
finish
