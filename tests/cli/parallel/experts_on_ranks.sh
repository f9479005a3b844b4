#!/usr/bin/env bash
# Mixtures of experts on several ranks have the losses, weights and balance of one process: experts
# split over all ranks of `data`, over some of them or over none, in uneven numbers, with sharding,
# tensor parallel, recomputation and batches that are smaller than the ranks.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/../expect.bash"
python3 - "$folder" <<'P'
import random, sys
random.seed(7)
with open(sys.argv[1] + "/text.txt", "w") as f:
    for _ in range(400):
        f.write("".join(random.choice("abcdefgh \n") for _ in range(10)))
P
cat > "$folder/moe.yaml" <<Y
model: $here/../../../models/moe_small.yaml
params: {layers: 2, heads: 2, width: 8, vocab_size: 16, positions: 8, experts: 7, chosen: 2, inner: 6, bias_rate: 0.01}
loss: cross_entropy(logits, targets)
optimizer: {name: adamw, lr: 1e-2}
clip: {global_norm: 1.0}
data:
  batch_size: 6
  train: {kind: text, path: text.txt, context: 8, windows: random, split: {train: 0.9, valid: 0.1}, part: train}
  valid: {kind: text, path: text.txt, context: 8, windows: consecutive, split: {train: 0.9, valid: 0.1}, part: valid}
train: {steps: 20, log_every: 1, evaluate_every: 10, checkpoint_every: 10}
precision: float64
Y
cat > "$folder/compare.py" <<'P'
"""compare.py A B...: losses and weights of runs against those of run A."""
import json, struct, sys
def losses(run):
    return [(e["kind"], e["step"], e["loss"]) for e in map(json.loads, open(run + "/metrics.jsonl")) if "loss" in e]
def weights(run):
    raw = open(run + "/model/model.safetensors", "rb").read()
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    out = {}
    for name, e in json.loads(raw[8:end]).items():
        if name == "__metadata__": continue
        begin, last = e["data_offsets"]
        kind = {"F64": "d", "F32": "f"}[e["dtype"]]
        out[name] = struct.unpack(f"<{(last - begin) // struct.calcsize(kind)}{kind}", raw[end + begin : end + last])
    return out
first, wanted = losses(sys.argv[1]), weights(sys.argv[1])
biases = [name for name in wanted if name.endswith("experts.bias")]
if len(first) < 20: sys.exit(f"{len(first)} losses")
if len(biases) != 2 or not any(wanted[biases[0]]): sys.exit(f"no bias has moved: {biases}")
for run in sys.argv[2:]:
    other, found = losses(run), weights(run)
    if [e[:2] for e in first] != [e[:2] for e in other]: sys.exit(f"{run} has other records")
    for (kind, step, a), (_, _, b) in zip(first, other):
        if not abs(a - b) <= 1e-10 * abs(a): sys.exit(f"{run}: {kind} loss {b} at step {step}, expected {a}")
    if found.keys() != wanted.keys(): sys.exit(f"{run} has other weights")
    for name, values in wanted.items():
        # The bias counts choices: it is the same if the routing is.
        bound = 0 if name in biases else 1e-9
        worst = max(abs(a - b) for a, b in zip(values, found[name], strict=True))
        if not worst <= bound: sys.exit(f"{run}: {name} differs by {worst}")
P
run() {  # run NAME COMMAND…
  local name="$1"
  shift
  "$@" --output "$folder/$name" > "$folder/out" 2> "$folder/error" || fail "$name: $*"
}
run one "$train" "$folder/moe.yaml"
layouts=()
layout() {  # layout NAME RANKS KEY=VALUE…
  local name="$1" ranks="$2"
  shift 2
  run "$name" "$train" "$folder/moe.yaml" "$@" --simulate "$ranks"
  layouts+=("$folder/$name")
}
layout data2 2 parallel.data=2
layout expert2 2 parallel.data=2 parallel.expert=2
layout expert2of4 4 parallel.data=4 parallel.expert=2
layout expert4 4 parallel.data=4 parallel.expert=4
layout expert3 3 parallel.data=3 parallel.expert=3
layout none 8 parallel.data=8 parallel.expert=8
for stage in 1 2 3; do layout "sharded$stage" 4 parallel.data=4 parallel.expert=2 parallel.sharding="$stage"; done
layout tensor 4 parallel.data=2 parallel.expert=2 parallel.tensor=2
layout recompute 2 parallel.data=2 parallel.expert=2 parallel.recompute=full
python3 "$folder/compare.py" "$folder/one" "${layouts[@]}" || fail "a layout differs"
# Micro-batches and pipelines, each as without the split of experts.
run parts "$train" "$folder/moe.yaml" parallel.micro_batches=2
run parts.split "$train" "$folder/moe.yaml" parallel.micro_batches=2 parallel.data=2 parallel.expert=2 --simulate 2
python3 "$folder/compare.py" "$folder/parts" "$folder/parts.split" || fail "micro-batches differ"
run pipeline "$train" "$folder/moe.yaml" parallel.pipeline=2 --simulate 2
run pipeline.split "$train" "$folder/moe.yaml" parallel.pipeline=2 parallel.data=2 parallel.expert=2 --simulate 4
python3 "$folder/compare.py" "$folder/pipeline" "$folder/pipeline.split" || fail "the pipeline differs"
# Experts are split, and their rows are exchanged.
run dumped "$train" "$folder/moe.yaml" train.steps=1 parallel.data=4 parallel.expert=2 --simulate 4 --dump-ir "$folder/ir"
grep -q "comm.all_to_all" "$folder"/ir/train.*.txt || fail "no rows are exchanged"
# Real processes have the same bits.
run real "$bin/paddle-launch" -n 4 paddle-train "$folder/moe.yaml" parallel.data=4 parallel.expert=2
cmp "$folder/real/model/model.safetensors" "$folder/expert2of4/model/model.safetensors" || fail "real processes have other bits"
# A checkpoint continues in any layout.
run resumed "$train" "$folder/moe.yaml" parallel.data=4 parallel.expert=2 --simulate 4 --until 10
ok "$train" --resume "$folder/resumed" parallel.data=1 parallel.expert=1
python3 "$folder/compare.py" "$folder/one" "$folder/resumed" || fail "the continued run differs"
expect 3 "parallel.expert: 3 must divide the 4 ranks of data" "$train" "$folder/moe.yaml" parallel.data=4 parallel.expert=3 --simulate 4 --output "$folder/bad"
expect 3 "parallel.expert: 2 must divide the 1 rank of data" "$train" "$folder/moe.yaml" parallel.expert=2 --output "$folder/bad"
# Operations on several of the sorted rows cannot be computed by each rank on its own.
cat > "$folder/mean.yaml" <<'Y'
model:
  inputs: {tokens: "int64[batch, length]"}
  model: |
    x = reshape(embedding(tokens, 16, 8), [-1, 8])
    order, counts = expert_order(topk(linear(x, 4), 2, -1)[1], 4)
    rows = expert_rows(x, order, 2)
    rows = rows - mean(rows, axis=0, keepdim=true)
    y = x + expert_sum(rows, order, k=2)
    return reshape(linear(y, 16), [batch, length, 16])
loss: cross_entropy(output, targets)
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 6
  train: {kind: text, path: text.txt, context: 8, windows: random}
train: {steps: 1}
Y
ok "$train" "$folder/mean.yaml" --output "$folder/mean"
expect 3 "mean.yaml:7:19: mean: needs several rows at once" "$train" "$folder/mean.yaml" parallel.data=2 --simulate 2 --output "$folder/bad"
finish
