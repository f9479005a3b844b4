#!/usr/bin/env bash
# The two modes agree on every kind of net: losses step by step, within 1e-5 relative (2e-2 where
# 16-bit values are rounded elsewhere), and bit for bit with compile.exact=true. STEPS (default 20)
# says how many steps. Batch norm amplifies rounding: a net with it is followed in float64; in float32
# its first losses are compared. So does the digits' net, of rectifiers and max pooling under a large
# rate: a change of one weight by its last bit moves its loss by 1% within 100 steps. LARGE names nets
# of configs/bench that are compared too, within 1e-4 and without compile.exact: "gpt2_124m bert_base"
# take half an hour for 100 steps on two cores.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
bin="${PADDLE_BIN:?}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
steps="${STEPS:-20}"
head -c 40000 /dev/urandom | base64 | tr -d '=\n' | fold -w 60 > "$folder/text.txt"
text=("data.train.path=$folder/text.txt" "data.valid.path=$folder/text.txt")
random_images='data.train={kind: random, size: 64, fields: [{name: image, shape: [3, 32, 32]}, {name: label, dtype: int64, low: 0, high: 10}]}'
failed=0

losses() {
  python3 -c 'import json, sys
for line in open(sys.argv[1]):
    row = json.loads(line)
    if row["kind"] == "train": print(repr(row["loss"]))' "$1/metrics.jsonl"
}

compare() {
  local name="$1"
  shift
  local common=("$@" train.steps="$steps" train.log_every=1 train.checkpoint_every=never train.evaluate_every=never)
  for mode in "${modes[@]}"; do
    local extra=()
    [[ $mode == eager ]] && extra=(--eager)
    [[ $mode == exact ]] && extra=(compile.exact=true)
    "$bin/paddle-train" "${common[@]}" --output "$folder/$name.$mode" "${extra[@]}" > "$folder/log" 2>&1 || {
      echo "FAIL: $name $mode"; cat "$folder/log"; failed=1; return; }
    losses "$folder/$name.$mode" > "$folder/$name.$mode.losses"
  done
  [[ " ${modes[*]} " != *" exact "* ]] || cmp -s "$folder/$name.eager.losses" "$folder/$name.exact.losses" || {
    echo "FAIL: $name: the losses of exact and eager differ"; failed=1; }
  python3 -c 'import sys
a, b = ([float(x) for x in open(f)][:int(sys.argv[4])] for f in sys.argv[1:3])
assert len(a) == len(b) > 0
worst = max(abs(x - y) / max(abs(x), 1e-12) for x, y in zip(a, b))
print(f"{sys.argv[3]}: {len(a)} losses, compiled and eager differ by at most {worst:.1e}")
sys.exit(worst > float(sys.argv[5]))' "$folder/$name.eager.losses" "$folder/$name.compiled.losses" "$name" "$followed" "$tolerance" || failed=1
}

followed="$steps" tolerance=1e-5 modes=(eager compiled exact)
digits=(configs/quickstart/digits.yaml 'data.train={kind: digits, size: 7000}')
compare digits_f64 "${digits[@]}" precision=float64
compare digits "${digits[@]}"
compare lenet configs/bench/lenet.yaml
compare char_gpt configs/text/char_gpt.yaml "${text[@]}" 'params={layers: 2, heads: 2, width: 64}'
compare char_lstm configs/text/char_lstm.yaml "${text[@]}" 'params={width: 32, hidden: 48, dropout: 0.2}'
compare deepfm configs/bench/deepfm.yaml params.rows=2000 data.batch_size=64 \
  'data.train={kind: random, size: 2048, fields: [{name: sparse, dtype: int64, shape: [26], low: 0, high: 2000}, {name: dense, shape: [13]}, {name: label, low: 0, high: 1}]}'
resnet18=(configs/bench/resnet50.yaml model=models/resnet.yaml:resnet18 params.classes=10 data.batch_size=4 "$random_images")
compare resnet18_f64 "${resnet18[@]}" precision=float64
followed=1
compare resnet18 "${resnet18[@]}" data.batch_size=32
followed="$steps"
compare bf16 configs/text/char_gpt.yaml "${text[@]}" 'params={layers: 1, heads: 2, width: 64}' precision=bf16 compile.exact=true
tolerance=2e-2
compare bf16_O2 configs/text/char_gpt.yaml "${text[@]}" 'params={layers: 1, heads: 2, width: 64}' precision=bf16 amp.level=O2
compare f16_O2 configs/text/char_gpt.yaml "${text[@]}" 'params={layers: 1, heads: 2, width: 64}' precision=f16 amp.level=O2

tolerance=1e-4 modes=(eager compiled)
for net in ${LARGE:-}; do compare "$net" "configs/bench/$net.yaml"; done

((failed == 0)) && echo "the modes agree"
exit "$failed"
