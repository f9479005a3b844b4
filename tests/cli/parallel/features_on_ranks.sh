#!/usr/bin/env bash
# Features of training on several ranks have the losses of one: rounding to int8 (quant.train),
# pruned weights (train.keep_zeros), 16-bit parameters (amp.level: O2), frozen parameters and LoRA,
# under data, tensor, sharding and a pipeline. `paddle eval` on ranks gives the numbers of one.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/../expect.bash"
launch="$bin/paddle-launch"
python3 - "$folder" <<'P'
import random, sys
random.seed(11)
with open(sys.argv[1] + "/text.txt", "w") as f:
    for _ in range(300):
        f.write("".join(random.choice("abcdefgh \n") for _ in range(10)))
P
cat > "$folder/gpt.yaml" <<Y
model: $here/../../../models/char_gpt.yaml
params: {layers: 2, heads: 2, width: 16, vocab_size: 16, positions: 8, dropout: 0.0}
loss: cross_entropy(logits, targets)
optimizer: {name: adamw, lr: 1e-2}
metrics: {perplexity: "perplexity(logits, targets)", accuracy: "accuracy(logits, targets)"}
data:
  batch_size: 8
  train: {kind: text, path: text.txt, context: 8, windows: random, split: {train: 0.9, valid: 0.1}, part: train}
  valid: {kind: text, path: text.txt, context: 8, windows: consecutive, split: {train: 0.9, valid: 0.1}, part: valid}
train: {steps: 6, log_every: 1}
Y
cat > "$folder/compare.py" <<'P'
"""compare.py BOUND RUN OTHER…: the losses of the steps of runs."""
import json, sys
def losses(run):
    return [l["loss"] for l in map(json.loads, open(run + "/metrics.jsonl")) if l["kind"] == "train"]
bound, first = float(sys.argv[1]), losses(sys.argv[2])
assert len(first) == 6 and first[-1] != first[0]
for run in sys.argv[3:]:
    other = losses(run)
    worst = max(abs(a - b) / abs(a) for a, b in zip(first, other, strict=True))
    if not worst <= bound: sys.exit(f"{run}: losses differ by {worst}: {other}, expected {first}")
P
# grid NAME BOUND SETTINGS…: one rank, and layouts of two and four.
grid() {
  local name="$1" bound="$2"
  shift 2
  ok "$train" "$folder/gpt.yaml" "$@" --output "$folder/$name"
  # Ranges for quantization are those of micro-batches.
  ok "$train" "$folder/gpt.yaml" "$@" train.accumulate=2 --output "$folder/$name.halves"
  local layouts=("parallel.data=2" "parallel.tensor=2" "parallel.data=2 parallel.sharding=3" "parallel.data=2 train.accumulate=2"
    "parallel.pipeline=2 parallel.data=2 parallel.micro_batches=2")
  [[ "$name" != quant ]] || unset "layouts[4]"
  local i=0 others=() layout ranks sizes
  for layout in "${layouts[@]}"; do
    read -ra sizes <<< "$layout"
    ranks=$([[ "$layout" == *pipeline* ]] && echo 4 || echo 2)
    ok "$train" "$folder/gpt.yaml" "$@" "${sizes[@]}" --simulate "$ranks" --output "$folder/$name.$i"
    others+=("$folder/$name.$i")
    i=$((i + 1))
  done
  python3 "$folder/compare.py" "$bound" "$folder/$name" "${others[@]:0:3}" || fail "$name: the losses differ"
  python3 "$folder/compare.py" "$bound" "$folder/$name.halves" "${others[@]:3}" || fail "$name: the losses of micro-batches differ"
}
grid plain 1e-10 precision=float64
grid quant 1e-4 'quant={scheme: int8, train: {observe: 2}}'
grid half 3e-2 precision=bfloat16 amp.level=O2
grid frozen 1e-10 precision=float64 'frozen=["layer.0.*", "words.weight"]'

expect 3 "parallel.pipeline: is not possible with quant.train" "$train" "$folder/gpt.yaml" 'quant={scheme: int8, train: {observe: 2}}' parallel.pipeline=2 --simulate 2 --output "$folder/bad"

# Adapters of a trained model; what is frozen keeps its bits on all ranks.
ok "$train" "$folder/gpt.yaml" precision=float64 --output "$folder/base"
grid lora 1e-10 precision=float64 "init.weights=$folder/base/model/model.safetensors" 'lora={rank: 2, only: ["*.attention.*.weight"]}'
cat > "$folder/weights.py" <<'P'
import json, struct
def tensors(path):
    raw = open(path, "rb").read()
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    return {n: (e, raw[end + e["data_offsets"][0]:end + e["data_offsets"][1]]) for n, e in json.loads(raw[8:end]).items() if n != "__metadata__"}
def write(path, values):
    header, at, body = {}, 0, b""
    for n, (e, data) in values.items():
        header[n] = {**e, "data_offsets": [at, at + len(data)]}
        at += len(data)
        body += data
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)
P
python3 - "$folder" <<'P' || fail "frozen weights have changed, or adapters were not trained"
import sys
sys.path.insert(0, sys.argv[1])
from weights import tensors
for run in ("lora", "lora.0", "lora.1", "lora.2", "lora.3", "lora.4"):
    base = tensors(sys.argv[1] + "/base/model/model.safetensors")
    now = tensors(f"{sys.argv[1]}/{run}/checkpoints/latest/model.safetensors")
    for name, (_, data) in base.items():
        assert now[name][1] == data, f"{run}: {name}"
    assert any(any(data) for name, (_, data) in now.items() if name.endswith("lora_b")), run
P

# Zeros of pruned weights stay zero: every second number of each matrix of a feed-forward layer.
python3 - "$folder" <<'P'
import sys
sys.path.insert(0, sys.argv[1])
from weights import tensors, write
base = tensors(sys.argv[1] + "/base/model/model.safetensors")
for name, (entry, data) in base.items():
    if len(entry["shape"]) == 2 and "feed_forward" in name:
        base[name] = (entry, b"".join(bytes(8) if i % 2 else data[8 * i:8 * i + 8] for i in range(len(data) // 8)))
write(sys.argv[1] + "/sparse.safetensors", base)
P
grid sparse 1e-10 precision=float64 "init.weights=$folder/sparse.safetensors" 'train.keep_zeros=["*.feed_forward.*weight"]'
python3 - "$folder" <<'P' || fail "zeros have not stayed"
import sys
sys.path.insert(0, sys.argv[1])
from weights import tensors
for run in ("sparse", "sparse.0", "sparse.1", "sparse.2", "sparse.3", "sparse.4"):
    now = tensors(f"{sys.argv[1]}/{run}/model/model.safetensors")
    pruned = [(n, d) for n, (e, d) in now.items() if len(e["shape"]) == 2 and "feed_forward" in n]
    assert pruned
    for name, data in pruned:
        assert all(data[8 * i:8 * i + 8] == bytes(8) for i in range(1, len(data) // 8, 2)), f"{run}: {name}"
        assert any(data)
P

# --- evaluation on ranks ---
"$bin/paddle-eval" "$folder/base" > "$folder/one.json" || fail "paddle eval"
same_evaluation() {
  python3 - "$folder/one.json" "$folder/out" <<'P' || fail "$1: another evaluation: $(cat "$folder/out")"
import json, sys
a, b = (json.loads(open(f).read().strip().splitlines()[-1]) for f in sys.argv[1:])
assert a.keys() == b.keys() and a["samples"] == b["samples"] > 0
for key in ("loss", "perplexity", "accuracy"):
    assert abs(a[key] - b[key]) <= 1e-12 * abs(a[key]), (key, a[key], b[key])
P
}
for layout in "3 parallel.data=3" "2 parallel.tensor=2" "4 parallel.data=2 parallel.tensor=2" "2 parallel.pipeline=2"; do
  read -ra sizes <<< "$layout"
  ok "$bin/paddle-eval" "$folder/base" "${sizes[@]:1}" --simulate "${sizes[0]}"
  same_evaluation "$layout"
done
ok "$launch" -n 2 paddle-eval "$folder/base" parallel.data=2 --details "$folder/details.json"
same_evaluation "two processes"
[[ -s "$folder/details.json" ]] || fail "an evaluation on ranks writes no details"
ok "$launch" -n 2 --simulate paddle-eval "$folder/base" parallel.data=2
same_evaluation "launch --simulate"
quiet 0 "$bin/paddle-eval" "$folder/lora.4"
quiet 0 "$bin/paddle-eval" "$folder/quant.0" parallel.data=2 --simulate 2
most_lines=1
expect 2 "parallel.data=2 has no effect on one rank" "$bin/paddle-eval" "$folder/base" parallel.data=2
expect 3 "data 1 x tensor 1 is 1 rank, the run has 2" "$bin/paddle-eval" "$folder/base" --simulate 2
expect 2 "--simulate runs all ranks in one process" "$launch" -n 2 paddle-eval "$folder/base" --simulate 2
finish
