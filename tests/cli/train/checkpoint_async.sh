#!/usr/bin/env bash
# Checkpoints that are written while training continues, and by several ranks: the same files as
# those of a run that waits, at any layout; killed runs resume from the last whole one.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
cat > "$folder/net.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 16]"}
  model: |
    h = relu(linear(x, 24))
    logits = linear(h, 4)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: adamw, lr: 1e-2}
data:
  batch_size: 8
  train:
    kind: random
    size: 48
    fields: [{name: x, shape: [16]}, {name: label, dtype: int64, low: 0, high: 4}]
train: {steps: 20, log_every: 1, checkpoint_every: 3, keep_checkpoints: 20}
Y
run() {
  local name="$1"
  "$train" "$folder/net.yaml" --output "$folder/$name" "${@:2}" > "$folder/out" 2> "$folder/error" ||
    fail "$name"
}
# same ONE OTHER STEP: the tensors of both checkpoints are the same bytes.
same() {
  for file in model optimizer; do
    cmp -s "$folder/$1/checkpoints/$3/$file.safetensors" \
      "$folder/$2/checkpoints/$3/$file.safetensors" || fail "$2: other $file of step $3 than $1"
  done
}
compare() {
  for step in 3 9 20; do same "$1" "$2" "$step"; done
  cmp -s "$folder/$1/model/model.safetensors" "$folder/$2/model/model.safetensors" ||
    fail "$2: another model than $1"
  ls -A "$folder/$2/checkpoints" | grep -q "writing" && fail "$2: leftovers"
}

run plain
run async train.checkpoint_async=true
compare plain async
run averages train.ema.decay=0.9
run averages-async train.ema.decay=0.9 train.checkpoint_async=true
compare averages averages-async

# Layouts whose weights, states and stages are on several ranks.
layouts=("parallel.data=2 parallel.tensor=2" "parallel.data=4 parallel.sharding=3"
  "parallel.data=2 parallel.pipeline=2 parallel.micro_batches=2 parallel.sharding=2")
for i in "${!layouts[@]}"; do
  read -ra layout <<< "${layouts[i]}"
  run "layout$i" "${layout[@]}" --simulate 4
  run "layout$i-async" "${layout[@]}" train.checkpoint_async=true --simulate 4
  compare "layout$i" "layout$i-async"
  # Another layout resumes in the middle of it.
  cp -r "$folder/layout$i" "$folder/resumed$i"
  rm -rf "$folder/resumed$i"/checkpoints/{12,15,18,20} "$folder/resumed$i/model"
  ln -sfn 9 "$folder/resumed$i/checkpoints/latest"
  "$train" --resume "$folder/resumed$i" parallel= > "$folder/out" 2> "$folder/error" ||
    fail "resumed$i"
  "$bin/paddle-launch" -n 4 "$train" "$folder/net.yaml" "${layout[@]}" \
    train.checkpoint_async=true --output "$folder/launched$i" > "$folder/out" 2> "$folder/error" ||
    fail "launched$i"
  compare "layout$i" "launched$i"
done

# A killed run resumes with the bits of one that was never stopped.
"$train" "$folder/net.yaml" train.checkpoint_async=true train.checkpoint_every=1 \
  train.keep_checkpoints=3 train.steps=400 --output "$folder/whole" > "$folder/out" 2>&1 || fail whole
for delay in 0.1 0.3 0.5; do
  rm -rf "$folder/killed"
  "$train" "$folder/net.yaml" train.checkpoint_async=true train.checkpoint_every=1 \
    train.keep_checkpoints=3 train.steps=400 --output "$folder/killed" > "$folder/out" 2>&1 &
  trainer=$!
  sleep "$delay"
  kill -KILL "$trainer" 2> "$folder/ignored"
  wait "$trainer" 2> "$folder/ignored"
  [[ -d "$folder/killed" ]] || continue
  "$train" --resume "$folder/killed" > "$folder/out" 2> "$folder/error" || fail "resumed after $delay s"
  cmp -s "$folder/whole/model/model.safetensors" "$folder/killed/model/model.safetensors" ||
    fail "killed after $delay s: another model"
done

# A full disk ends the run with one line, and the last whole checkpoint stays.
sed 's/linear(x, 24)/linear(x, 512)/' "$folder/net.yaml" > "$folder/wide.yaml"
status=0
(trap "" XFSZ; ulimit -f 12; exec "$train" "$folder/wide.yaml" train.checkpoint_async=true \
  --output "$folder/full") > "$folder/out" 2> "$folder/error" || status=$?
((status == 6)) || fail "a full disk gives $status, expected 6"
(($(wc -l < "$folder/error") == 1)) || fail "a full disk should be reported in one line"
ls -A "$folder/full/checkpoints" | grep -q "writing" && fail "a full disk leaves files"
finish
