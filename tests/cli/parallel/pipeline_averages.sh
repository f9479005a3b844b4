#!/usr/bin/env bash
# Averaged weights in a pipeline: evaluations and saved models are those of one process, for weights
# that two stages read, for running statistics and for states; batches that do not divide into micro-batches.
# needs: python3
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cat > "$folder/net.yaml" <<'Y'
name: net
model:
  name: net
  inputs: {image: "float32[batch, 1, 28, 28]"}
  blocks:
    conv_bn(x, n, kernel, stride): |
      return batch_norm(conv2d(x, n, kernel, stride=stride, padding=kernel // 2, bias=false))
    block(x, n, stride): |
      y = conv_bn(relu(conv_bn(x, n, 3, stride)), n, 3, 1)
      if stride != 1:
        x = conv_bn(x, n, 1, stride)
      return relu(x + y)
  model: |
    x = relu(conv_bn(image, 4, 3, 4))
    x = block(x, 4, 1)
    x = block(x, 8, 2)
    x = block(x, 8, 1)
    logits = linear(mean(x, [2, 3]), 10)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: momentum, lr: 0.05}
precision: float64
seed: 5
data:
  batch_size: 16
  train: {kind: digits, size: 80, seed: 1}
  valid: {kind: digits, size: 40, seed: 2}
  transforms: [{scale: {fields: image, factor: 0.00392156862745098}}]
train: {steps: 4, log_every: 1, evaluate_every: 1, checkpoint_every: never}
Y
# The embedding is the output layer, too, so the first and the last stage read it.
cat > "$folder/tied.yaml" <<'Y'
name: tied
model:
  name: tied
  inputs: {image: "float32[batch, 1, 28, 28]"}
  model: |
    table = param("table", [16, 8], init=normal(0, 0.1))
    x = matmul(mean(reshape(image, [batch, 49, 16]), [1]), table)
    for i in range(4):
      x = x + linear(relu(linear(x, 16)), 8)
    logits = matmul(x, table, transpose_y=true)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: momentum, lr: 0.05}
precision: float64
seed: 5
data:
  batch_size: 16
  train: {kind: digits, size: 80, seed: 1}
  valid: {kind: digits, size: 40, seed: 2}
  transforms: [{scale: {fields: image, factor: 0.00392156862745098}}]
train: {steps: 4, log_every: 1, evaluate_every: 1, checkpoint_every: never}
Y
# Updates of a state that the forward and the backward pass read.
sed -e 's/^name: tied/name: state/' -e '/^  model: |/,/^  outputs/c\
  model: |\
    x = linear(mean(reshape(image, [batch, 49, 16]), [1]), 8)\
    scale = state("scale", [8], init=1)\
    y = relu(x * scale)\
    if training:\
      update(scale, 0.9 * scale + 0.4 * mean(relu(detach(y)), [0]))\
    for i in range(4):\
      y = y + linear(relu(linear(y, 16)), 8)\
    logits = linear(y, 10)\
  outputs: [logits]' "$folder/tied.yaml" > "$folder/state.yaml"
compare() {
  for run in one two; do
    "$bin/paddle-eval" "$folder/$run" 2> /dev/null | tail -n 1 > "$folder/$run.eval"
  done
  python3 - "$folder" "$1" <<'P' || fail "$1: a pipeline evaluates other weights"
import json, sys
folder, name = sys.argv[1:]
def losses(run):
    lines = [json.loads(line) for line in open(f"{folder}/{run}/metrics.jsonl")]
    return [line["loss"] for line in lines if line["kind"] in ("train", "valid")] + [
        json.load(open(f"{folder}/{run}.eval"))["loss"]]
one, two = losses("one"), losses("two")
if len(one) != 9 or any(abs(a - b) > 1e-9 * abs(a) for a, b in zip(one, two)):
    print(name, one, two)
    sys.exit(1)
P
}
for net in net tied state; do
  for more in train.ema.decay=0.7 "train.swa={start: 1, every: 1}" "optimizer={name: schedule_free_adamw}"; do
    rm -rf "$folder/one" "$folder/two"
    ok "$train" "$folder/$net.yaml" "$more" train.accumulate=2 --output "$folder/one"
    ok "$train" "$folder/$net.yaml" "$more" "parallel={pipeline: 2, micro_batches: 2}" --simulate 2 --output "$folder/two"
    compare "$net $more"
  done
done
for more in parallel.schedule=zero_bubble parallel.recompute=full; do
  rm -rf "$folder/one" "$folder/two"
  ok "$train" "$folder/state.yaml" train.accumulate=4 --output "$folder/one"
  ok "$train" "$folder/state.yaml" "parallel={pipeline: 2, micro_batches: 4}" "$more" --simulate 2 --output "$folder/two"
  compare "state $more"
done
sed -i -e '/if training/,/update(scale/d' -e 's/logits = linear(y, 10)/if training:\n      update(scale, 0.9 * scale + 0.4 * mean(y, [0]))\n    logits = linear(y, 10)/' "$folder/state.yaml"
expect 3 "the state 'scale' must be read and updated in the same stage" \
  "$train" "$folder/state.yaml" "parallel={pipeline: 4, micro_batches: 4}" --simulate 4
# 16 samples in 3 micro-batches: 5, 5 and 6.
rm -rf "$folder/one" "$folder/two"
ok "$train" "$folder/tied.yaml" train.accumulate=3 --output "$folder/one"
ok "$train" "$folder/tied.yaml" "parallel={pipeline: 2, micro_batches: 3}" --simulate 2 --output "$folder/two"
compare "micro-batches of different sizes"
finish
