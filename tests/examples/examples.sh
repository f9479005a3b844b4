#!/usr/bin/env bash
# The examples of the library, two copies of each at a time: what they print, and that they end
# without an error. Under sanitizers (presets asan and tsan) these find what the copies do wrong.
set -euo pipefail
bin=${PADDLE_BIN:?}
[[ -x "$bin/example_cpp_train_steps" ]] || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "$*" >&2; exit 1; }

awk 'BEGIN { print "a,b,y"; srand(1)
  for (i = 0; i < 40; ++i) { a = int(rand() * 9) / 4; b = int(rand() * 9) / 4
    print a "," b "," 2 * a - b + 0.5 } }' > "$folder/rows.csv"
cat > "$folder/line.yaml" <<'Y'
model: {inputs: {x: "float32[batch, 2]"}, model: [{linear: 1}], outputs: [prediction]}
loss: mse_loss(prediction, y)
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 8
  train: &rows
    kind: csv
    path: rows.csv
    fields: [{name: x, columns: [a, b]}, {name: y, columns: [y]}]
  valid: *rows
train: {epochs: 200, log_every: 1000, evaluate_every: 20 epochs}
Y
cd "$folder"

# twice NAME COMMAND…: runs two copies at once, where {} is the number of the copy; their output is
# in NAME.1 and NAME.2.
twice() {
  local name=$1 copy pids=()
  shift
  for copy in 1 2; do
    "${@//\{\}/$copy}" > "$name.$copy" 2> "$name.$copy.error" &
    pids+=($!)
  done
  for copy in 1 2; do
    wait "${pids[copy - 1]}" || { cat "$name.$copy" "$name.$copy.error" >&2; fail "$name ends with $?"; }
  done
}

twice train_steps "$bin/example_cpp_train_steps" line.yaml steps-{} 1e-4
twice train_c "$bin/example_c_train" line.yaml c-{} 1e-4
twice train "$bin/example_cpp_train" line.yaml whole-{} train.epochs=4
for copy in 1 2; do
  grep -qx "checkpoint steps-$copy/checkpoints/10" "train_steps.$copy" || fail "no checkpoint of step 10"
  grep -q '^step 100: loss 0.*, on the validation data 0' "train_steps.$copy" || fail "no evaluation"
  grep -qx '3 parameters' "train_steps.$copy" || fail "parameters"
  # C and C++ train alike, up to the names of the folders.
  diff <(sed "s/steps-$copy/RUN/; /parameters/d" "train_steps.$copy") \
    <(sed "s/c-$copy/RUN/" "train_c.$copy") || fail "the examples in C and C++ differ"
  grep -qx "20 steps, model in whole-$copy/model" "train.$copy" || fail "train"
done
twice predict "$bin/example_cpp_predict" steps-{}/model 1 2
tail -n 1 predict.1 | grep -Eq '0\.(4|5)' || { cat predict.1 >&2; fail "2 * 1 - 2 + 0.5 is 0.5"; }
twice predict_c "$bin/example_c_predict" c-{}/model 1 2
twice gradients "$bin/example_cpp_gradients"
for ranks in 1 3; do
  twice ranks "$bin/paddle-launch" -n $ranks "$bin/example_cpp_ranks"
  grep -qx "weights of $ranks ranks: 2.000 -1.000" ranks.1 || { cat ranks.1 >&2; fail "ranks"; }
done

# Errors have the exit codes of the tools.
status=0
"$bin/example_c_train" nowhere.yaml out 1 2> error || status=$?
[[ $status == 2 || $status == 3 ]] && grep -q nowhere.yaml error || fail "a config that is not there gives $status"
echo "examples: ok"
