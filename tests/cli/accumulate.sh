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
compare="$(dirname "${BASH_SOURCE[0]}")/same_weights.py"
python3 "$compare" "$folder"/{1,2,4,16,eager} || fail "accumulation changes the weights"

# Losses that are sums, weighted or over a number of samples, and what is neither.
same() {
  local name="$1"
  shift
  for parts in 1 4; do
    "$train" "$folder/run.yaml" "$@" train.accumulate="$parts" --output "$folder/$name.$parts" > "$folder/out" 2> "$folder/error" \
      || { fail "$name in $parts micro-batches"; cat "$folder/error"; }
  done
  python3 "$compare" "$folder/$name.1" "$folder/$name.4" || fail "$name: accumulation changes the weights"
}
same sum "loss='cross_entropy(logits, label, reduction=\"sum\")'" optimizer.lr=0.01
same scaled_sum "loss='3 * sum(square(logits)) - sum(logits)'" optimizer.lr=0.001
same sum_over_batch "loss='sum(square(logits)) / logits.shape[0]'" optimizer.lr=0.01
same mean_and_penalty "loss='mean(square(logits - 1)) + 0.1 * mean(abs(logits))'"
same product "step='update(sum(matmul(t(logits), logits)))'" loss=null optimizer.lr=0.001
expect 3 "neither a mean nor a sum" "$train" "$folder/run.yaml" "loss='sum(square(logits)) + mean(logits)'" train.accumulate=2 --output "$folder/refused"
expect 3 "neither a mean nor a sum" "$train" "$folder/run.yaml" "loss='sqrt(sum(square(logits)))'" train.accumulate=2 --output "$folder/refused"
quiet 0 "$train" "$folder/run.yaml" "loss='sqrt(sum(square(logits)))'" --output "$folder/whole"
finish
