#!/usr/bin/env bash
# Metrics of one's own: sums, minima and maxima over the data and an expression of them. They equal
# the built-in metrics that they spell out, whatever the batches and ranks; paddle eval repeats them.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
evaluate="$bin/paddle-eval"
cd "$folder" || exit 1
python3 - <<'P'
import random
random.seed(4)
with open("d.csv", "w") as f:
    f.write("a,b,two,three\n")
    for i in range(203):
        a, b = random.gauss(0, 1), random.gauss(0, 1)
        f.write(f"{a:.4f},{b:.4f},{int(a + b + random.gauss(0, 1) > 0.7)},{random.randrange(3)}\n")
P
cat > c.yaml <<'Y'
model:
  inputs: {x: "float32[batch, 2]"}
  model: |
    score = reshape(linear(x, 1, name="score"), [-1])
    logits = linear(x, 3, name="logits")
  outputs: [score, logits]
loss: cross_entropy(logits, three)
metrics:
  f_half:
    state:
      tp: sum(logical_and(score > 0, two == 1))
      fp: sum(logical_and(score > 0, two == 0))
      fn: sum(logical_and(score <= 0, two == 1))
    value: 1.25 * tp / (1.25 * tp + 0.25 * fn + fp)
    better: higher
  f_half_again: 1.25 * precision(score, two) * recall(score, two) / (0.25 * precision(score, two) + recall(score, two))
  macro:
    state:
      hits: sum(one_hot(argmax(logits, axis=1), 3) * one_hot(three, 3), axis=0)
      found: sum(one_hot(argmax(logits, axis=1), 3), axis=[0])
      given: sum(one_hot(three, 3), axis=0)
    value: mean(2 * hits / (found + given))
  macro_again: f1(logits, three, average="macro")
  range:
    state: {low: min(score), high: max(score), most: "max(logits, axis=0)", error: "1 - 0 * accuracy(logits, three)"}
    value: high - low
  last_class: {state: {given: "sum(one_hot(three, 3), axis=0)"}, value: "given[2]"}
  correct: {state: {share: "accuracy(logits, three)", n: "sum(three * 0 + 1)"}, value: share * n}
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 32
  train: &rows
    kind: csv
    path: d.csv
    fields:
      - {name: x, columns: [a, b]}
      - {name: two, scalar: true, dtype: int64}
      - {name: three, scalar: true, dtype: int64}
  valid: *rows
train: {epochs: 2, log_every: 50}
Y
expect 3 "a state is one call" "$train" c.yaml --dry-run
sed -i 's/, error: "1 - 0 \* accuracy(logits, three)"//' c.yaml
ok "$train" c.yaml --output run
ok "$evaluate" run
python3 - <<'P' || fail "values: $(tail -2 run/metrics.jsonl)"
import csv, json
valid = [l for l in map(json.loads, open("run/metrics.jsonl")) if l["kind"] == "valid"][-1]
assert abs(valid["f_half"] - valid["f_half_again"]) < 1e-12 and 0 < valid["f_half"] < 1, valid
assert abs(valid["macro"] - valid["macro_again"]) < 1e-12, valid
assert valid["range"] > 0.5
rows = list(csv.DictReader(open("d.csv")))
assert valid["last_class"] == sum(r["three"] == "2" for r in rows), valid
assert valid["correct"] == round(valid["correct"]) > 0
for name in ("f_half", "macro"):
    low, high = valid["intervals"][name]
    assert low < valid[name] < high
    assert abs(low - valid["intervals"][name + "_again"][0]) < 1e-12
line = json.load(open("out"))
for name in set(line) - {"model", "data", "samples", "intervals"}:
    assert line[name] == valid[name], (name, line, valid)
P
# The same digits with other batches and ranks.
for how in data.valid_batch_size=7 "parallel.data=2 --simulate 2" train.accumulate=4; do
  # shellcheck disable=SC2086
  ok "$train" c.yaml --output other --overwrite optimizer.lr=0 $how
  ok "$train" c.yaml --output still --overwrite optimizer.lr=0
  python3 - <<'P' || fail "$how changes a metric"
import json
a, b = ([l for l in map(json.loads, open(run + "/metrics.jsonl")) if l["kind"] == "valid"][-1] for run in ("still", "other"))
for name in ("f_half", "macro", "range", "last_class", "correct", "intervals"):
    assert a[name] == b[name], (name, a, b)
P
done
# A division by zero gives NaN, which JSON has as null.
ok "$train" c.yaml --output nothing 'metrics={none: {state: {n: sum(three * 0)}, value: n / n}}' && grep -q '"none":null' nothing/metrics.jsonl || fail "0 / 0"
ok "$train" c.yaml --output best train.best=f_half
[[ -f best/best/model.safetensors ]] || fail "better: higher decides nothing"
expect 3 "may be better when higher or lower" "$train" c.yaml --dry-run train.best=macro
rejected() { expect 3 "$2" "$train" c.yaml --dry-run "metrics={m: $1}"; }
rejected '{state: {a: sum(score)}, value: b + 1}' "'b'"
rejected '{state: {a: score + 1}, value: a}' "a state is one call"
rejected '{state: {a: smu(score)}, value: a}' "did you mean 'sum'"
rejected '{state: {}, value: 1}' "state is a map"
rejected '{state: {a: sum(score)}}' "'value' is missing"
rejected '{state: {a: sum(score)}, value: a, bettr: higher}' "did you mean 'better'"
rejected '{state: {a: "sum(logits, axis=1)"}, value: mean(a)}' "differs from batch to batch"
rejected '{state: {a: "sum(logits, axis=5)"}, value: mean(a)}' "out of range"
rejected '{state: {a: "sum(logits, axis=0)"}, value: a * 2}' "expected a number"
rejected '{state: {a: sum(mean(score))}, value: a}' "have no batch axis"
rejected 'sum(score)' "'sum' is not a metric"
finish
