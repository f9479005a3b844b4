#!/usr/bin/env bash
# Wrong input of every kind: one line that says what and where, and the documented exit status.
set -uo pipefail
bin="${PADDLE_BIN:?}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
failures=0

# expect STATUS TEXT COMMAND…: the command ends so, and its error says TEXT.
expect() {
  local wanted="$1" text="$2" status=0
  shift 2
  "$@" > "$folder/out" 2> "$folder/error" || status=$?
  if [[ "$status" != "$wanted" ]] || ! grep -qF -- "$text" "$folder/error"; then
    echo "FAIL: $* gave $status, expected $wanted with '$text':"; head -c 600 "$folder/error"; failures=$((failures + 1))
  fi
}

train="$bin/paddle-train"
good=configs/quickstart/digits.yaml
expect 2 "no such file" "$train" "$folder/none.yaml"
expect 2 "--help" "$train"
expect 2 "--nonsense" "$train" $good --nonsense
expect 3 "did you mean 'lr'" "$train" $good optimizer.lrr=1
expect 3 "optimizer.lr" "$train" $good optimizer.lr=fast
expect 3 "data.batch_size" "$train" $good data.batch_size=0
expect 3 "cannot have 100 micro-batches" "$train" $good train.accumulate=100 --dry-run --output "$folder/a"
printf 'model: [1\n' > "$folder/broken.yaml"
expect 3 "broken.yaml" "$train" "$folder/broken.yaml"
printf 'name: a\nname: b\n' > "$folder/twice.yaml"
expect 3 "twice.yaml:2:1" "$train" "$folder/twice.yaml"
expect 3 "layers_of_nothing" "$train" $good "model={inputs: {image: 'float32[batch, 1, 28, 28]'}, model: [layers_of_nothing], outputs: [logits]}" --output "$folder/b"
expect 4 "No such file" "$train" $good "data.train={kind: idx, images: $folder/none.gz}" --output "$folder/c"
head -c 100 /dev/urandom > "$folder/bad.npz"
expect 4 "bad.npz" "$train" $good "data.train={kind: npz, path: $folder/bad.npz}" --output "$folder/d"
expect 2 "no such file" "$bin/paddle-infer" "$folder/nowhere"
expect 5 "bad.npz" "$bin/paddle-infer" models/lenet.yaml --weights "$folder/bad.npz" --benchmark 1 --batch 1
expect 6 "" "$train" $good --output /proc/nowhere/run
[[ "$failures" == 0 ]] && echo "all errors as documented"
exit "$((failures > 0))"
