#!/usr/bin/env bash
# paddle-compare-runs names the first step and the first operation at which two runs part: none for
# two layouts of one config beyond rounding, the right ones for another weight, another model and
# other data.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/../expect.bash"
compare="$bin/paddle-compare-runs"
python3 - "$folder" <<'P'
import random, sys
random.seed(3)
for name in ("rows", "other"):
    with open(f"{sys.argv[1]}/{name}.csv", "w") as f:
        f.write(",".join(f"p{i}" for i in range(12)) + ",label\n")
        for i in range(48):
            f.write(",".join(f"{random.gauss(0, 1):.4f}" for _ in range(12)) + f",{i % 4}\n")
P
cat > "$folder/net.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 12]"}
  blocks:
    layer(x): |
      return relu(linear(x, 40))
  model: |
    for i in range(2):
      x = layer(x)
    logits = linear(dropout(x, 0.1), 4)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: adamw, lr: 0.01}
clip: {global_norm: 1.0}
data:
  batch_size: 8
  train:
    kind: csv
    path: rows.csv
    fields: [{name: x, columns: ["p*"]}, {name: label, scalar: true, dtype: int64}]
train: {steps: 8, log_every: 1, checkpoint_every: 3, digests: true}
precision: float64
Y
run() {  # run NAME SETTINGS…
  local name="$1"
  shift
  "$train" "$folder/net.yaml" --output "$folder/$name" "$@" > "$folder/out" 2> "$folder/error" || fail "$name: $*"
}
compared() {  # compared STATUS A B OPTIONS…
  local wanted="$1" status=0
  shift
  "$compare" "$folder/$1" "$folder/$2" "${@:3}" > "$folder/out" 2> "$folder/error" || status=$?
  [[ "$status" == "$wanted" ]] || { cat "$folder/out"; fail "compare-runs $*: status $status, expected $wanted"; }
}
says() { grep -qE -- "$1" "$folder/out" || { cat "$folder/out"; fail "the output should say '$1'"; }; }

# --- the same bits, and other bits that are rounding ---
run one
run again
compared 0 one again
says "^steps: 8 compared, by losses and digests of all parameters"
says "^first other bits: none"
run data parallel.data=2 parallel.sharding=2 train.accumulate=1 --simulate 2
run both parallel.data=2 parallel.tensor=2 --simulate 4
run pipe parallel.pipeline=2 parallel.micro_batches=2 --simulate 2
run parts train.accumulate=2
compared 0 parts pipe
says "^first other bits: none"
for other in data both; do
  compared 0 one "$other" --operations
  says "^first beyond 1e-10: none"
  says "^first operation beyond rounding: none"
done
# All values of the step are compared, not a few of them.
count="$(grep -oE "[0-9]+ of [0-9]+ values" "$folder/out" | grep -oE "of [0-9]+" | grep -oE "[0-9]+")"
((count > 40)) || fail "only $count values were compared"

# --- another rate from the third step on: the step, and no operation before the update ---
run half train.steps=3
cp -r "$folder/half" "$folder/changed"
"$train" --resume "$folder/changed" train.steps=8 clip.global_norm=0.25 > "$folder/out" 2> "$folder/error" || fail "resume"
compared 1 one changed --operations
says "^first other bits: step 4, loss .* in both; 6 of 6 parameters differ"
says "step 5, losses"
says "^operations of step 4, both from .*/checkpoints/3: "
says "^first operation beyond rounding: "
if grep -E "^first operation beyond rounding" "$folder/out" | grep -qE "linear at|softmax_cross_entropy at"; then fail "the forward pass is the same"; fi

# --- other data: the field is named ---
run data.other data.train.path="$folder/other.csv"
compared 1 one data.other --operations --step 1
says "^first operation beyond rounding: field x"

# --- another program ---
sed 's/dropout(x, 0.1)/dropout(gelu(x), 0.1)/' "$folder/net.yaml" > "$folder/gelu.yaml"
"$train" "$folder/gelu.yaml" --output "$folder/gelu" > "$folder/out" 2> "$folder/error" || fail "gelu"
compared 1 one gelu --operations --step 1
says "^the programs part: "
says "gelu"
compared 1 one gelu --json
python3 -c 'import json, sys; o = json.load(open(sys.argv[1])); assert o["first_bits"]["step"] == 1 and o["steps"] == 8, o' "$folder/out" || fail "--json"

# --- runs without digests: the logged losses ---
run plain train.digests=false
compared 0 one plain
says "by logged losses only"

most_lines=1
expect 2 "is not the folder of a run" "$compare" "$folder/one" "$folder/none"
expect 2 "--step needs --operations" "$compare" "$folder/one" "$folder/data" --step 3
finish
