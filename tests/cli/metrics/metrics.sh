#!/usr/bin/env bash
# Metrics in configs: arguments by position, by name and as expressions; arithmetic around calls;
# values that do not depend on the batch size; what is rejected before the first step; train.best.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
# Ten rows of three scores with a label each; the label is the highest score in rows 0, 3, 6 and 9,
# the second in rows 1, 4 and 7, and the lowest in the others. binary = 1 in rows 0 to 5, where a > 0.
python3 - "$folder" <<'P'
import sys
with open(sys.argv[1] + "/rows.csv", "w") as f:
    f.write("a,b,c,label,binary,signed,ignored,o0,o1,o2\n")
    for i in range(10):
        label = i % 3
        scores = [0.0, 0.0, 0.0]
        order = [3.0, 2.0, 1.0] if i % 3 == 0 else [2.0, 3.0, 1.0] if i % 3 == 1 else [1.0, 2.0, 3.0]
        for k in range(3):
            scores[(label + k) % 3] = order[k]
        if i > 5:
            scores[0] = -scores[0]
        one_hot = [int(k == label) for k in range(3)]
        row = scores + [label, int(i < 6), 1 if i < 6 else -1, -100 if i % 2 else label] + one_hot
        f.write(",".join(map(str, row)) + "\n")
P
cat > "$folder/run.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 3]"}
  model: |
    w = param("w", [3], init=1.0)
    return x * w, x[:, 0] * w[0]
  outputs: [logits, score]
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0}
data:
  batch_size: 4
  train: &rows
    kind: csv
    path: rows.csv
    fields:
      - {name: x, columns: [a, b, c]}
      - {name: label, scalar: true, dtype: int64}
      - {name: binary, scalar: true, dtype: int64}
      - {name: signed, scalar: true, dtype: int64}
      - {name: ignored, scalar: true, dtype: int64}
      - {name: one_hot, columns: [o0, o1, o2]}
  valid: *rows
train: {epochs: 1, log_every: 1000}
Y

# The value of metric m as python evaluates the last validation of a run.
value() {
  python3 - "$folder/run/metrics.jsonl" <<'P'
import json, sys
print([json.loads(l)["m"] for l in open(sys.argv[1]) if '"valid"' in l][-1])
P
}
expect_value() {
  local wanted="$1" expression="$2" found
  shift 2
  "$train" "$folder/run.yaml" "metrics={m: '$expression'}" --overwrite --output "$folder/run" "$@" > "$folder/out" 2> "$folder/error" \
    || { fail "$expression"; return; }
  found="$(value)"
  python3 -c "import sys; sys.exit(abs($found - ($wanted)) > 1e-6)" || fail "$expression is $found, expected $wanted"
}
rejected() {
  expect 3 "$1" "$train" "$folder/run.yaml" "metrics={m: '$2'}" --dry-run
  expect 3 "$1" "$train" "$folder/run.yaml" "metrics={m: '$2'}" --output "$folder/rejected"
}

# Top-k accuracy of the rows, by hand: top_accuracy K COLUMN
top_accuracy() {
  python3 - "$folder/rows.csv" "$@" <<'P'
import csv, sys
k, column = int(sys.argv[2]), sys.argv[3]
rows = [r for r in csv.DictReader(open(sys.argv[1])) if r[column] != "-100"]
def rank(row):
    scores, label = [float(row[c]) for c in "abc"], int(row[column])
    return sum(s > scores[label] or (s == scores[label] and c < label) for c, s in enumerate(scores))
print(sum(rank(r) < k for r in rows) / len(rows))
P
}
top1="$(top_accuracy 1 label)"
top2="$(top_accuracy 2 label)"
expect_value "$top1" 'accuracy(logits, label)'
expect_value "$top1" 'accuracy(logits, label)' --eager
expect_value "$top2" 'accuracy(logits, label, 2)'
expect_value "$top2" 'accuracy(label=label, input=logits, k=1 + 1)'
expect_value "100 * $top2 - 1" '100 * accuracy(logits, label, k=2) - 1'
expect_value "1 - $top1 / $top2" '1 - accuracy(logits, label) / accuracy(logits, label, k=2)'
expect_value "$top1" 'accuracy(logits, argmax(one_hot, axis=-1))'
expect_value 1.0 'accuracy(score, binary)'
expect_value 1.0 'accuracy(score, signed > 0)'
# Probabilities are compared with 0.5, whatever they pass through.
expect_value 1.0 'accuracy(sigmoid(score), binary)'
expect_value 1.0 'f1(reshape(sigmoid(score), [-1, 1]), binary)'
expect_value 0.6 'accuracy(sigmoid(score), binary, threshold=0)'
# A value of a whole batch counts by the batch's samples.
for size in 3 4 10; do
  expect_value "0.6" 'average(mean(cast(binary, "float32")))' data.valid_batch_size="$size"
  expect_value "0.6" 'average(cast(binary, "float32"))' data.valid_batch_size="$size"
done

rejected "unknown option 'topk'" 'accuracy(logits, label, topk=3)'
rejected "must be an integer" 'accuracy(logits, label, k=1.5)'
rejected "given twice" 'accuracy(logits, label, 2, k=2)'
rejected "k=4 exceeds the 3 classes" 'accuracy(logits, label, k=4)'
rejected "must be one of" 'f1(logits, label, average="mean")'
rejected "same shape" 'accuracy(logits, one_hot)'
rejected 'need average=' 'f1(logits, label)'
rejected 'need average=' 'auc(logits, label)'
rejected "'mean' is not a metric" 'mean(logits)'
rejected "cannot be an argument" 'average(accuracy(logits, label))'
rejected "must have the same shape" 'rmse(logits, label)'
rejected "is a sum over the batch" 'average(sum(score))'
rejected "logits" 'accuracy(logits, label) + logits'
rejected "'label' is missing" 'accuracy(logits)'
# Labels that are not classes: with the location of the metric, before the first step.
for mode in --dry-run "--output $folder/rejected"; do
  # shellcheck disable=SC2086
  expect 4 "label -1 is neither 0 nor 1" "$train" "$folder/run.yaml" 'metrics={m: "accuracy(score, signed)"}' data.valid_batch_size=10 $mode
done
expect_value "$(top_accuracy 1 ignored)" 'accuracy(logits, ignored)' 'loss=cross_entropy(logits, ignored)'

# The error of a scaled target is in the units of the file: the constant 0 predicts the mean of c,
# whose mean absolute deviation python computes.
expected="$(python3 - "$folder/rows.csv" <<'P'
import csv, sys
c = [float(r["c"]) for r in csv.DictReader(open(sys.argv[1]))]
mean = sum(c) / len(c)
print(sum(abs(v - mean) for v in c) / len(c))
P
)"
scaled="{kind: csv, path: $folder/rows.csv, fields: [{name: x, columns: [a]}, {name: c, columns: [c], scaling: standard}]}"
expect_value "$expected" 'mae(guess, c)' 'model={inputs: {x: "float32[batch, 1]"}, model: "return x * param(\"w\", [1], init=0.0)", outputs: [guess]}' \
  'loss=mse_loss(guess, c)' "data.train=$scaled" "data.valid=$scaled"

bad() { expect 3 "$1" "$train" "$folder/run.yaml" "$2" --dry-run "${@:3}"; }
bad "is a key of metrics.jsonl" 'metrics={loss: "accuracy(logits, label)"}'
bad "is a key of metrics.jsonl" 'metrics={kind: "accuracy(logits, label)"}'
bad "given twice" 'metrics=["accuracy(logits, label)", "accuracy(logits, label, k=2)"]'
bad "give train.best_mode" 'metrics={m: "average(score)"}' train.best=m
bad "is better when higher" 'metrics={m: "accuracy(logits, label)"}' train.best=m train.best_mode=min
status="$(run_bounded "$train" "$folder/run.yaml" 'metrics={m: "average(score)"}' train.best=m train.best_mode=min --dry-run)"
[[ "$status" == 0 ]] || fail "train.best_mode"

# A metric that is not a number is never the best, and the run can be resumed.
"$train" "$folder/run.yaml" 'metrics={m: "auc(score, binary * 0)"}' train.best=m --output "$folder/nan" > "$folder/out" 2> "$folder/error" || fail "a run whose metric is NaN"
grep -q "m is nan at step 3, which is never the best" "$folder/error" || fail "no warning about a NaN metric"
quiet_resume() { "$train" --resume "$folder/nan" train.epochs=2 > "$folder/out" 2> "$folder/error" || fail "resuming after a NaN metric"; }
quiet_resume
finish
