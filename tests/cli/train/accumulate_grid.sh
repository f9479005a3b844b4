#!/usr/bin/env bash
# Several updates from micro-batches have the same weights as updates from whole batches, compiled and
# eager, for every optimizer and way of clipping, over layers of equal shapes and over tables with
# row-sparse and dense gradients, of which each batch reads few rows.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
compare="$(dirname "${BASH_SOURCE[0]}")/same_weights.py"
python3 - "$folder" <<'P'
import random, sys
random.seed(3)
with open(sys.argv[1] + "/rows.csv", "w") as f:
    f.write("a,b,c,id,other,label\n")
    for i in range(44):
        numbers = ",".join(f"{random.gauss(0, 1):.4f}" for _ in range(3))
        f.write(f"{numbers},{random.randrange(30)},{random.randrange(30)},{random.randrange(4)}\n")
P
cat > "$folder/run.yaml" <<'Y'
model:
  params: {sparse: true}
  inputs: {x: "float32[batch, 3]", ids: "int64[batch, 2]"}
  model: |
    table = embedding(ids, 30, 4, sparse=sparse)
    h = concat([x, reshape(table, [batch, 8])], 1)
    h = tanh(linear(h, 4, name="linear"))
    h = h + tanh(linear(h, 4, name="second"))
    h = h + tanh(linear(h, 4, name="third"))
    return linear(h, 4, name="last")
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 16
  shuffle: false
  train:
    kind: csv
    path: rows.csv
    fields:
      - {name: x, columns: [a, b, c]}
      - {name: ids, columns: [id, other], dtype: int64}
      - {name: label, scalar: true, dtype: int64}
train: {epochs: 3, log_every: 1000, checkpoint_every: never}
precision: float64
Y
sets=(sgd momentum adam adamw adagrad rmsprop)
check() {
  local name="$1"
  shift
  local run
  for run in 1 4 4.eager; do
    local flags=()
    [[ "$run" != *.eager ]] || flags=(--eager)
    "$train" "$folder/run.yaml" "$@" train.accumulate="${run%.eager}" "${flags[@]}" \
      --output "$folder/$name.$run" > "$folder/out" 2> "$folder/error" || fail "$name, $run"
  done
  python3 "$compare" "$folder/$name".{1,4,4.eager} || fail "$name: accumulation changes the weights"
  rm -rf "$folder/$name".*
}
for optimizer in "${sets[@]}"; do
  for sparse in true false; do
    for clip in null "{global_norm: 0.2}"; do
      check "$optimizer.$sparse.${clip//[^a-z]/}" params.sparse=$sparse optimizer.name=$optimizer \
        optimizer.lr=0.05 optimizer.weight_decay=0.01 clip="$clip"
    done
  done
done
for optimizer in adamax adadelta asgd nadam radam rprop lamb lars; do
  check "$optimizer" params.sparse=true optimizer.name=$optimizer optimizer.lr=0.05 \
    optimizer.weight_decay=0.01 clip="{global_norm: 0.2}"
done
for clip in "{value: 0.01}" "{norm: 0.05}"; do
  check "adam.${clip//[^a-z]/}" optimizer.name=adam optimizer.lr=0.05 clip="$clip"
done
finish
