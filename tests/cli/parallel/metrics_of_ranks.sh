#!/usr/bin/env bash
# Evaluations of one, two and three ranks have the same digits for every metric, with uneven parts
# and a last batch of one row, for data and tensor parallel and a pipeline, simulated and with
# processes. The values and the details of classes are those of one rank; each rank counts its own
# rows.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
launch="$bin/paddle-launch"
python3 - "$folder" <<'P'
import random, sys
random.seed(5)
with open(sys.argv[1] + "/rows.csv", "w") as f:
    f.write("a,b,c,score,value,target,label,binary,m0,m1,m2,s0,s1,s2,s3,t0,t1,t2\n")
    for i in range(29):  # batches of 7, the last of 1
        floats = [f"{random.gauss(0, 1):.5f}" for _ in range(4)]
        floats += [f"{random.gauss(50, 9):.5f}" for _ in range(2)]
        integers = [random.randrange(3), random.randrange(2)] + [random.randrange(2) for _ in range(3)]
        sequence = [random.randrange(4) for _ in range(7)]
        f.write(",".join(map(str, floats + integers + sequence)) + "\n")
P
# Values of each row depend only on that row, so the operands have the same bits in every layout.
cat > "$folder/run.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 3]", score: "float32[batch]", value: "float32[batch]"}
  model: |
    w = param("w", [3], init=1.0)
    u = param("u", [3], init=1.0)
    h = x * w
    return h * u, score * w[0], value * u[0]
  outputs: [logits, score_out, value_out]
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0}
metrics:
  accuracy: accuracy(logits, label)
  top2: accuracy(logits, label, k=2)
  binary: accuracy(score_out, binary)
  auc: auc(score_out, binary)
  auc_macro: auc(logits, label, average="macro")
  average_precision: average_precision(score_out, binary)
  precision: precision(logits, label, average="weighted")
  recall: recall(logits, label, average="macro")
  f1: f1(logits, label, average="macro")
  several: f1(logits, many, multilabel=true, average="macro")
  iou: iou(logits, label)
  mae: mae(value_out, target)
  rmse: rmse(value_out, target)
  mape: mape(value_out, target)
  r2: r2(value_out, target)
  edit_rate: edit_rate(guess, truth)
  perplexity: perplexity(logits, label)
  average: average(value_out)
  of_batch: average(max(value_out))
  transposed: average(transpose(logits, [1, 0]) * 3)
  error: 100 * (1 - accuracy(logits, label))
  bleu: bleu(guess, truth)
  own:
    state: {sums: "sum(logits, axis=0)", most: max(value_out), least: min(score_out), top: "max(logits, axis=0)"}
    value: sum(sums) + most + least + top[1]
data:
  batch_size: 7
  train: &rows
    kind: csv
    path: rows.csv
    fields:
      - {name: x, columns: [a, b, c]}
      - {name: score, scalar: true}
      - {name: value, scalar: true}
      - {name: target, scalar: true}
      - {name: label, scalar: true, dtype: int64}
      - {name: binary, scalar: true, dtype: int64}
      - {name: many, columns: [m0, m1, m2], dtype: int64}
      - {name: guess, columns: [s0, s1, s2, s3], dtype: int64}
      - {name: truth, columns: [t0, t1, t2], dtype: int64}
  valid: *rows
train: {epochs: 1, log_every: 1000}
Y
cat > "$folder/same.py" <<'P'
"""same.py RUN RUN...: the metrics and details of the first run, digit for digit."""
import json, sys
def read(run):
    line = [json.loads(l) for l in open(run + "/metrics.jsonl") if '"valid"' in l][-1]
    for key in ("loss", "seconds", "samples_per_second"): line.pop(key, None)
    return line, json.load(open(run + "/evaluation.json"))
first = read(sys.argv[1])
if len(first[0]) < 23: sys.exit(f"only {len(first[0])} values: {first[0]}")
for run in sys.argv[2:]:
    for wanted, found in zip(first, read(run), strict=True):
        for key in wanted:
            if wanted[key] != found.get(key):
                sys.exit(f"{run}: {key} is {found.get(key)}, of one rank {wanted[key]}")
P
run() {
  local name="$1"
  shift
  "$@" --overwrite --output "$folder/$name" > "$folder/out" 2> "$folder/error" || fail "$name: $* failed:"
}
run one "$train" "$folder/run.yaml"
run two "$train" "$folder/run.yaml" parallel.data=2 --simulate 2
run three "$train" "$folder/run.yaml" parallel.data=3 --simulate 3
run processes "$launch" -n 2 "$train" "$folder/run.yaml" parallel.data=2
run tensor "$train" "$folder/run.yaml" parallel.data=2 parallel.tensor=2 --simulate 4
run pipeline "$train" "$folder/run.yaml" parallel.data=2 parallel.pipeline=2 parallel.micro_batches=7 --simulate 4
python3 "$folder/same.py" "$folder"/{one,two,three,processes,tensor,pipeline} > "$folder/error" 2>&1 \
  || fail "evaluations differ:"
# Operands stay where they are: only what has the batch in another dim is gathered.
run dumped "$train" "$folder/run.yaml" parallel.data=2 --simulate 2 --dump-ir "$folder/dump"
trace="$(ls "$folder"/dump/evaluate.*.trace.txt | head -1)"
[[ "$(grep -c 'comm.all_gather' "$trace")" == 1 ]] || fail "operands of metrics are gathered: $(grep all_gather "$trace")"
grep -q "'h' = multiply(%0, .*split\[0: 1x7 over 0\]" "$trace" || fail "values have no names or placements in the dump"
finish
