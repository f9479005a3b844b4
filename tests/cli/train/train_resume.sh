#!/usr/bin/env bash
# A run that is killed, resumed, interrupted and resumed again ends with the bits of one that was
# uninterrupted; with dropout, augmentation, two loader workers and gradient accumulation in use.
set -euo pipefail
bin="${PADDLE_BIN:?}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
config=(configs/quickstart/digits.yaml "data.train.range=[0,1200]" "data.valid.range=[20000,20100]" data.workers=2
  train.accumulate=4 train.epochs=4 train.checkpoint_every=5 train.evaluate_every=never train.log_every=10
  "data.augment=[{horizontal_flip: {fields: image}}]")

"$bin/paddle-train" "${config[@]}" --output "$folder/whole" > "$folder/whole.log"

# Waits until a checkpoint of at least step $2 is there, so that the kill falls inside the run.
await() {
  for _ in $(seq 600); do
    for path in "$1"/checkpoints/[0-9]*; do
      [[ -e "$path/state.json" && "${path##*/}" -ge "$2" ]] && return 0
    done
    sleep 0.05
  done
  echo "no checkpoint came"; return 1
}

"$bin/paddle-train" "${config[@]}" --output "$folder/cut" > "$folder/cut.log" &
run=$!
await "$folder/cut" 5
kill -9 "$run" 2> /dev/null || true
wait "$run" 2> /dev/null || true

"$bin/paddle-train" --resume "$folder/cut" > "$folder/cut2.log" &
run=$!
await "$folder/cut" 15
status=0
kill -INT "$run" 2> /dev/null && { wait "$run" || status=$?; [[ "$status" == 130 || "$status" == 0 ]] || { echo "status $status"; exit 1; }; }

"$bin/paddle-train" --resume "$folder/cut" > "$folder/cut3.log" || { cat "$folder/cut3.log"; exit 1; }
cmp "$folder/whole/model/model.safetensors" "$folder/cut/model/model.safetensors"

# A folder with checkpoints is not overwritten by accident.
status=0
"$bin/paddle-train" "${config[@]}" --output "$folder/whole" 2> "$folder/error" || status=$?
[[ "$status" == 2 ]] && grep -q -- --resume "$folder/error"
echo "identical after kill and resumption"
