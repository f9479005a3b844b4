#!/usr/bin/env bash
# Changes outside of the config that a resumed run detects: data files, the model file, the metric
# that decides which checkpoint is best.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
python3 - "$folder/rows.csv" <<'P'
import random, sys
random.seed(0)
cities = {"bern": 0, "oslo": 1, "rome": 1}
with open(sys.argv[1], "w") as f:
    f.write("city,size,label\n")
    for i in range(40):
        city = random.choice(sorted(cities))
        f.write(f"{city},{i},{cities[city]}\n")
P
cat > "$folder/net.yaml" <<'Y'
inputs: {city: "int64[batch]", size: "float32[batch, 1]"}
model: |
  return linear(tanh(concat([embedding(city, 8, 4), size], 1)), 2)
outputs: [logits]
Y
cat > "$folder/run.yaml" <<'Y'
model: net.yaml
loss: cross_entropy(logits, label)
metrics: {acc: "accuracy(logits, label)"}
optimizer: {name: adam, lr: 0.05}
data:
  batch_size: 10
  train:
    kind: csv
    path: rows.csv
    range: [0, 20]
    fields:
      - {name: city, scalar: true, kind: categorical}
      - {name: size, columns: [size], scaling: standard}
      - {name: label, scalar: true, dtype: int64}
  valid:
    kind: csv
    path: rows.csv
    range: [20, 40]
    fields:
      - {name: city, scalar: true, kind: categorical}
      - {name: size, columns: [size], scaling: standard}
      - {name: label, scalar: true, dtype: int64}
train: {epochs: 2, best: loss}
Y
"$train" "$folder/run.yaml" --output "$folder/run" > /dev/null 2> "$folder/error" || { cat "$folder/error"; fail "the first run"; }
cp -r "$folder/run" "$folder/first"
again() { rm -rf "$folder/run"; cp -r "$folder/first" "$folder/run"; }

quiet 0 "$train" --resume "$folder/run" train.epochs=3
cmp "$folder/first/model/fitted.json" "$folder/run/model/fitted.json" || fail "nothing changed but what was learned"

# Other rows: told, and what the first rows taught stays.
again
sed 's/^\([a-z]*\),\([0-9]*\),/\1,1\2,/' "$folder/rows.csv" > "$folder/other.csv"
cp "$folder/rows.csv" "$folder/kept.csv"
cp "$folder/other.csv" "$folder/rows.csv"
expect 0 "data.train has changed since the run began" "$train" --resume "$folder/run" train.epochs=3
cmp "$folder/first/model/fitted.json" "$folder/run/model/fitted.json" || fail "statistics were learned again"
grep -q '"best_step": 6' "$folder/run/checkpoints/6/state.json" || fail "the best of other validation data stayed"
cp "$folder/kept.csv" "$folder/rows.csv"

# The model computes something else; a comment does not.
again
sed -i 's/tanh/relu/' "$folder/net.yaml"
expect 3 "the model or the loss computes something else" "$train" --resume "$folder/run" train.epochs=3
sed -i 's/relu/tanh/; 1i # a comment' "$folder/net.yaml"
quiet 0 "$train" --resume "$folder/run" train.epochs=3

# The best of another metric, and of another definition of it.
again
"$train" --resume "$folder/run" train.epochs=3 train.best=acc > "$folder/out" 2>&1 || fail "another train.best"
grep -q "is discarded" "$folder/out" || fail "the best of another metric should be forgotten"
grep -q '"best_step": 6' "$folder/run/checkpoints/6/state.json" || fail "no accuracy was best"
"$train" --resume "$folder/run" train.epochs=4 "metrics.acc='accuracy(logits, label, k=2)'" > "$folder/out" 2>&1 || fail "a redefined metric"
grep -q "is discarded" "$folder/out" || fail "the best by the old definition should be forgotten"
finish
