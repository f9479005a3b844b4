#!/usr/bin/env bash
# optimizer.l1_decay against the same penalty as a term of the loss: equal losses, for optimizers with
# an update operation, composed ones, parameter groups and clipping.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"

config() { # PENALTY: added to the loss
  cat << YAML
model:
  inputs: {x: "float32[batch, 12]"}
  model: |
    h = tanh(linear(x, 8, name="first"))
    logits = linear(h, 3, name="second")
    penalty = sum(abs(get("first.weight"))) * 0.01 + sum(abs(get("second.weight"))) * 0.02
  outputs: [logits, penalty]
loss: cross_entropy(logits, label)$1
data:
  batch_size: 16
  train: {kind: random, size: 320, fields: [{name: x, shape: [12]}, {name: label, dtype: int64, low: 0, high: 3}]}
train: {steps: 20, log_every: 1, evaluate_every: never, checkpoint_every: 20}
YAML
}
config "" > "$folder/plain.yaml"
config " + penalty" > "$folder/term.yaml"

for optimizer in sgd adam lion; do
  "$bin/paddle-train" "$folder/term.yaml" --output "$folder/term" --overwrite \
    "optimizer={name: $optimizer, lr: 0.01}" > "$folder/log" 2>&1 || { fail "$optimizer"; cat "$folder/log"; }
  "$bin/paddle-train" "$folder/plain.yaml" --output "$folder/decay" --overwrite \
    "optimizer={name: $optimizer, lr: 0.01, l1_decay: 0.01, decay_vectors: false, groups: [{match: second.weight, l1_decay: 0.02}]}" \
    > "$folder/log" 2>&1 || { fail "$optimizer"; cat "$folder/log"; }
  python3 - "$folder/term" "$folder/decay" << 'PY' || fail "$optimizer: l1_decay is not the gradient of the penalty"
import json, struct, sys
def weights(run):
    data = open(run + "/checkpoints/20/model.safetensors", "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    out = {}
    for name, entry in head.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        out[name] = struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])
    return out
a, b = weights(sys.argv[1]), weights(sys.argv[2])
worst = max(abs(x - y) for name in a for x, y in zip(a[name], b[name]))
sys.exit(0 if a.keys() == b.keys() and worst < 1e-5 else f"largest difference {worst}")
PY
done

# With clipping, the penalty is added to the clipped gradient: with lr 1 and a norm of almost 0, a
# weight moves by the penalty.
"$bin/paddle-train" "$folder/plain.yaml" --output "$folder/clipped" "optimizer={name: sgd, lr: 1, l1_decay: 0.25}" \
  "clip={global_norm: 1e-12}" train.steps=1 train.checkpoint_every=1 seed=3 > "$folder/log" 2>&1 || { fail "clipped"; cat "$folder/log"; }
"$bin/paddle-train" "$folder/plain.yaml" --output "$folder/still" "optimizer={name: sgd, lr: 0}" \
  train.steps=1 train.checkpoint_every=1 seed=3 > "$folder/log" 2>&1 || { fail "still"; cat "$folder/log"; }
python3 - "$folder/still" "$folder/clipped" << 'PY' || fail "the penalty is clipped"
import json, struct, sys
def weight(run):
    data = open(run + "/checkpoints/1/model.safetensors", "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    begin, end = json.loads(data[8:8 + size])["first.weight"]["data_offsets"]
    return struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])
a, b = weight(sys.argv[1]), weight(sys.argv[2])
sys.exit(0 if all(abs(abs(x - y) - 0.25) < 1e-6 and (x > 0) == (x > y) for x, y in zip(a, b)) else 1)
PY

expect 3 "'optimizer.l1_decay'" "$bin/paddle-train" "$folder/plain.yaml" --output "$folder/bad" "optimizer={name: sgd, l1_decay: -1}"
finish
