#!/usr/bin/env bash
# Runs that are killed at random moments, also while a checkpoint is written, and resumed until they
# end, have the weights of uninterrupted runs, bit for bit: a convolutional net with dropout,
# augmentation, two loader workers and accumulation, a character GPT, and DeepFM with row-sparse
# tables. KILLS (default 24) and SEED choose how often and when.
set -euo pipefail
bin="${PADDLE_BIN:?}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
kills="${KILLS:-24}"
RANDOM="${SEED:-7}"

head -c 40000 /dev/urandom | base64 | tr -d '=\n' | fold -w 60 > "$folder/text.txt"
digits=(configs/quickstart/digits.yaml "data.train={kind: digits, size: 600}" "data.valid={kind: digits, size: 50, seed: 9}"
  data.batch_size=32 data.workers=2 train.accumulate=4 train.epochs=8 train.checkpoint_every=3 train.evaluate_every=20
  train.best=accuracy train.log_every=5
  "data.augment=[{random_rotation: {fields: image, degrees: 10}}, {horizontal_flip: {fields: image}}]")
gpt=(configs/text/char_gpt.yaml "params={layers: 2, width: 32, heads: 2}" "data.train.path=$folder/text.txt" "data.valid.path=$folder/text.txt"
  data.workers=2 train.steps=150 train.checkpoint_every=4 train.evaluate_every=never)
deepfm=(configs/bench/deepfm.yaml params.rows=2000 "data.train={kind: random, size: 2048, fields: [{name: sparse, dtype: int64, shape: [26], low: 0, high: 2000}, {name: dense, shape: [13]}, {name: label, low: 0, high: 1}]}"
  data.batch_size=64 data.workers=2 train.steps=150 train.checkpoint_every=4)

milliseconds() { sleep "$(($1 / 1000)).$(printf '%03d' $(($1 % 1000)))"; }

# Waits for the next half-written checkpoint, at most two seconds.
await_writing() {
  for _ in $(seq 400); do
    compgen -G "$1/checkpoints/.writing-*" > /dev/null && return 0
    sleep 0.005
  done
}

stress() {
  local name="$1" each="$2" run status killed=0 resumed=0
  shift 2
  "$bin/paddle-train" "$@" --threads 1 --output "$folder/$name" > "$folder/log" || { cat "$folder/log"; return 1; }
  local command=("$bin/paddle-train" "$@" --threads 1 --output "$folder/$name.cut")
  while true; do
    "${command[@]}" > "$folder/log" 2> "$folder/error" &
    run=$!
    if ((killed < each)); then
      local signal
      case $((RANDOM % 4)) in
        0) signal=INT ;;
        1) signal=TERM ;;
        *) signal=KILL ;;
      esac
      if ((RANDOM % 3 == 0)); then await_writing "$folder/$name.cut"; else milliseconds $((20 + RANDOM % 500)); fi
      kill -"$signal" "$run" 2> /dev/null || true
    fi
    status=0
    wait "$run" 2> /dev/null || status=$?
    case "$status" in
      0) break ;;
      130 | 143 | 137) killed=$((killed + 1)) ;;
      *) echo "FAIL: $name ended with $status after $killed kills:"; cat "$folder/error"; return 1 ;;
    esac
    # Now and then the newest checkpoint is damaged as well: the one before it must do.
    local newest
    newest="$(ls "$folder/$name.cut/checkpoints" 2> /dev/null | grep -E '^[0-9]+$' | sort -n | tail -n 1 || true)"
    if ((killed % 6 == 3)) && [[ "$(ls "$folder/$name.cut/checkpoints" 2> /dev/null | grep -cE '^[0-9]+$')" -ge 2 ]]; then
      printf 'x' | dd of="$folder/$name.cut/checkpoints/$newest/optimizer.safetensors" bs=1 seek=900 conv=notrunc status=none
    fi
    # A run that was killed before it made its folder begins again.
    if [[ -e "$folder/$name.cut/config.yaml" ]]; then
      command=("$bin/paddle-train" --threads 1 --resume "$folder/$name.cut")
      resumed=$((resumed + 1))
    fi
  done
  cmp "$folder/$name/model/model.safetensors" "$folder/$name.cut/model/model.safetensors" || return 1
  python3 - "$folder/$name" "$folder/$name.cut" <<'P' || return 1
import json, sys
def lines(folder):
    rows = [json.loads(line) for line in open(folder + "/metrics.jsonl")]
    kept = {}
    for r in rows:
        if r["kind"] != "end":
            kept[r["kind"], r["step"]] = {k: v for k, v in r.items() if k not in ("seconds", "samples_per_second", "data_wait")}
    return kept, len(rows)
(whole, n), (cut, m) = lines(sys.argv[1]), lines(sys.argv[2])
assert whole == cut, sorted(set(map(str, whole.items())) ^ set(map(str, cut.items())))[:4]
assert n == m, f"{n} and {m} lines of metrics"
P
  compgen -G "$folder/$name.cut/checkpoints/.*ing-*" > /dev/null && { echo "FAIL: leftovers in $name"; return 1; }
  echo "$name: identical after $killed kills and $resumed resumptions"
}

stress digits $((kills / 3)) "${digits[@]}"
stress gpt $((kills / 3)) "${gpt[@]}"
stress deepfm $((kills - 2 * (kills / 3))) "${deepfm[@]}"
