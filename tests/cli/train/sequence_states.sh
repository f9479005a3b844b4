#!/usr/bin/env bash
# States with scope="sequence": an epoch is a sequence, an evaluation is one of its own, weights hold
# the initial values, checkpoints the current ones, and resuming continues the sequence.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cat > "$folder/run.yaml" <<'Y'
model:
  inputs: {image: "uint8[batch, 1, 28, 28]"}
  model: |
    count = state("count", [], init=5.0, scope="sequence")
    count = update(count, count + 1)
    total = count * 1.0
    logits = linear(flatten(cast(image, "float32"), 1) * 0.003, 10)
  outputs: [logits, total]
loss: cross_entropy(logits, label) + 0 * total
metrics: {count: average(total)}
optimizer: {name: sgd, lr: 0.01}
data:
  batch_size: 8
  train: {kind: digits, size: 64, range: [0, 40]}
  valid: {kind: digits, size: 64, range: [40, 64]}
  valid_batch_size: 8
train: {epochs: 2, evaluate_every: 3, checkpoint_every: 3, keep_checkpoints: 9}
Y
# Five batches an epoch: step 6 is the first of the second epoch.
check() {
  python3 - "$folder/run" <<'P' || fail "wrong values of the state ($1)"
import json, struct, sys
run = sys.argv[1]
def tensors(name):
    with open(f"{run}/{name}.safetensors", "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(size))
        data = f.read()
    return {k: struct.unpack("<f", data[slice(*v["data_offsets"])])[0]
            for k, v in header.items() if k.rsplit("/")[-1] == "count"}
def check(found, expected, what):
    if found != expected:
        sys.exit(f"{what}: expected {expected}, found {found}")
check(tensors("model/model"), {"count": 5.0}, "model")
for step, count in ((3, 8.0), (6, 6.0), (9, 9.0), (10, 5.0)):
    check(tensors(f"checkpoints/{step}/model"), {"count": 5.0}, f"weights at step {step}")
    check(tensors(f"checkpoints/{step}/optimizer"), {"sequence/count": count}, f"step {step}")
# Three batches of validation count 6, 7, 8, whatever training has counted.
valid = [json.loads(line) for line in open(run + "/metrics.jsonl")]
valid = [line["count"] for line in valid if line.get("kind") == "valid"]
check(set(valid), {7.0}, "evaluations")
P
}
for mode in "" --eager; do
  rm -rf "$folder/run"
  [[ "$(run_bounded "$train" "$folder/run.yaml" --output "$folder/run" $mode)" == 0 ]] || fail "training $mode"
  check "$mode"
  # The same folder under another name is not a second folder.
  rm -rf "$folder"/run/checkpoints/{9,10,latest} "$folder/run/model"
  ln -s 6 "$folder/run/checkpoints/latest"
  [[ "$(run_bounded "$train" --resume "$folder/run" --output "$folder/./run/" $mode)" == 0 ]] || fail "resuming $mode"
  check "resumed $mode"
done
expect 2 "names another one" "$train" --resume "$folder/run" --output "$folder/other"
finish
