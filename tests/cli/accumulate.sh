#!/usr/bin/env bash
# Micro-batches change the rounding and nothing else: the weights after a run with accumulation are
# those of a run without, with a short last batch and with labels that the loss ignores, which lie
# unevenly in the batches.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/expect.bash"
python3 - "$folder" <<'P'
import random, sys
random.seed(5)
with open(sys.argv[1] + "/rows.csv", "w") as f:
    f.write("a,b,c,label\n")
    for i in range(83):
        ignored = i % 8 in (0, 1, 2) or i > 78
        f.write(f"{random.gauss(0, 1):.4f},{random.gauss(0, 1):.4f},{random.gauss(0, 1):.4f},{-100 if ignored else i % 4}\n")
P
cat > "$folder/run.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 3]"}
  model: [{linear: 16}, tanh, {linear: 4}]
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0.5}
data:
  batch_size: 16
  train:
    kind: csv
    path: rows.csv
    fields: [{name: x, columns: [a, b, c]}, {name: label, scalar: true, dtype: int64}]
train: {epochs: 4, log_every: 1000}
precision: float64
Y
for parts in 1 2 4 16; do
  "$train" "$folder/run.yaml" train.accumulate="$parts" --output "$folder/$parts" > "$folder/out" 2> "$folder/error" || fail "$parts micro-batches"
done
"$train" "$folder/run.yaml" train.accumulate=4 --eager --output "$folder/eager" > "$folder/out" 2> "$folder/error" || fail "eager"
python3 - "$folder" <<'P' || fail "accumulation changes the weights"
import json, struct, sys
def weights(run):
    raw = open(f"{sys.argv[1]}/{run}/model/model.safetensors", "rb").read()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + length])
    data = raw[8 + length :]
    return {n: struct.unpack(f"<{(e['data_offsets'][1] - e['data_offsets'][0]) // 8}d", data[slice(*e["data_offsets"])])
            for n, e in header.items() if n != "__metadata__"}
whole = weights("1")
assert max(abs(x) for x in whole["linear.weight"]) > 0.1
for run in ("2", "4", "16", "eager"):
    for name, values in weights(run).items():
        worst = max(abs(a - b) for a, b in zip(values, whole[name]))
        assert worst < 1e-12, (run, name, worst)
P
finish
