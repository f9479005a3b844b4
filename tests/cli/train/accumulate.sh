#!/usr/bin/env bash
# Micro-batches change the rounding and nothing else: the weights after a run with accumulation are
# those of a run without, with a short last batch and with labels that the loss ignores, which lie
# unevenly in the batches.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
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

# Losses that are sums of terms of the samples, or such sums over a divisor of the data.
same() {
  local name="$1"
  shift
  for parts in 1 4; do
    "$train" "$folder/run.yaml" "$@" train.accumulate="$parts" --output "$folder/$name.$parts" > "$folder/out" 2> "$folder/error" \
      || { fail "$name in $parts micro-batches"; cat "$folder/error"; }
  done
  "$train" "$folder/run.yaml" "$@" train.accumulate=4 --eager --output "$folder/$name.eager" > "$folder/out" 2> "$folder/error" \
    || { fail "$name in micro-batches, eager"; cat "$folder/error"; }
  python3 "$compare" "$folder/$name".{1,4,eager} || fail "$name: accumulation changes the weights"
}
# rejected PLACE WORDS LOSS: what cannot be made of parts names its operation.
rejected() {
  expect 3 "$1" "$train" "$folder/run.yaml" "loss='$2'" train.accumulate=2 --output "$folder/rejected"
  quiet 0 "$train" "$folder/run.yaml" "loss='$2'" train.epochs=1 optimizer.lr=1e-4 --overwrite --output "$folder/whole"
}
kept='cast(label > 0, "float64")'
safe="maximum(label, 0)"
same sum "loss='cross_entropy(logits, label, reduction=\"sum\")'" optimizer.lr=0.01
same scaled_sum "loss='3 * sum(square(logits)) - sum(logits)'" optimizer.lr=0.001
same sum_over_batch "loss='sum(square(logits)) / logits.shape[0]'" optimizer.lr=0.01
same mean_and_penalty "loss='mean(square(logits - 1)) + 0.1 * mean(abs(logits))'"
same product "step='update(sum(matmul(t(logits), logits)))'" loss=null optimizer.lr=0.001
same class_weights "loss='cross_entropy(logits, label, weight=concat([full([1], 1.0), full([2], 5.0), full([1], 0.2)], 0))'"
same smoothed "loss='cross_entropy(logits, label, label_smoothing=0.1)'"
same masked_mean "loss='sum(cross_entropy(logits, $safe, reduction=\"none\") * $kept) / sum($kept)'"
same masked_mean_at_least "loss='sum(cross_entropy(logits, $safe, reduction=\"none\") * $kept) / maximum(sum($kept), 20.0)'"
same weights_that_sum_to_one "loss='sum(cross_entropy(logits, $safe, reduction=\"none\") * ($kept / sum($kept)))'"
same same_ignored_labels "loss='cross_entropy(logits, label) + 0.5 * cross_entropy(2 * logits, label)'"
same selected "loss='sum(masked_select(cross_entropy(logits, $safe, reduction=\"none\"), label > 0)) / sum($kept)'"
same mean_and_constant "loss='mean(square(logits - 1)) + 3'"
same norms_of_samples "loss='mean(sqrt(sum(square(logits), 1) + 1))'"
rejected "'add' is not a sum over samples" 'cross_entropy(logits, label) + cross_entropy(logits, where(label > 1, label, -100))'
rejected "'add' is not a sum over samples" 'cross_entropy(logits, label) + mean(square(logits))'
rejected "'add' is not a sum over samples" 'sum(square(logits)) + mean(logits)'
rejected "'sqrt' is not a sum over samples" 'sqrt(mean(square(logits)))'
rejected "'sqrt' is not a sum over samples" 'sqrt(sum(square(logits)))'
rejected "'max' is not a sum over samples" 'max(square(logits))'
rejected "'logsumexp' is not a sum over samples" 'logsumexp(logits)'
rejected "is not a sum over samples" 'mean(square(logits - mean(logits)))'
rejected "is not a sum over samples" 'mean(matmul(logits, t(logits)))'
rejected "is not a sum over samples" 'sum(square(logits)) / sum(abs(logits))'
rejected "is not a sum over samples" 'mean(softmax(logits, 0) * logits)'
rejected "does not depend on them" 'sum(square(logits)) + 3'

# The validation loss is that of the whole set, in batches of any size.
cp "$folder/run.yaml" "$folder/valid.yaml"
sed -i 's/^  train:$/  valid: \&rows/; s/^train: .*/train: {epochs: 1, log_every: 1000}/' "$folder/valid.yaml"
sed -i 's/^precision/  train: *rows\nprecision/; /^train: {/d' "$folder/valid.yaml"
printf 'train: {epochs: 1, log_every: 1000}\n' >> "$folder/valid.yaml"
whole_set() {
  local name="$1" size
  shift
  for size in 83 16 7 1; do
    "$train" "$folder/valid.yaml" "$@" data.valid_batch_size="$size" optimizer.lr=0.001 --overwrite --output "$folder/valid.$size" > "$folder/out" 2> "$folder/error" || fail "$name with validation batches of $size"
    ! grep -q "the validation loss" "$folder/error" || fail "$name should not be warned of"
  done
  python3 - "$folder" <<'P' || fail "$name: the validation loss depends on the batch size"
import json, sys
losses = []
for size in (83, 16, 7, 1):
    lines = [json.loads(line) for line in open(f"{sys.argv[1]}/valid.{size}/metrics.jsonl")]
    losses += [line["loss"] for line in lines if line["kind"] == "valid"]
assert len(losses) == 4 and max(losses) - min(losses) < 1e-9 * abs(losses[0]), losses
P
}
whole_set mean "loss='cross_entropy(logits, label)'"
whole_set sum "loss='cross_entropy(logits, label, reduction=\"sum\")'"
whole_set class_weights "loss='cross_entropy(logits, label, weight=concat([full([1], 1.0), full([2], 5.0), full([1], 0.2)], 0))'"
whole_set masked_mean "loss='sum(cross_entropy(logits, $safe, reduction=\"none\") * $kept) / sum($kept)'"
"$train" "$folder/valid.yaml" "loss='sqrt(mean(square(logits)))'" data.valid_batch_size=16 --output "$folder/warned" > "$folder/out" 2> "$folder/error" || fail "the root of a mean"
[[ "$(grep -c "the validation loss is the mean over data.valid_batch_size samples" "$folder/error")" == 1 ]] || fail "the root of a mean should be warned of once"
finish
