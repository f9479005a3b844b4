#!/usr/bin/env bash
# --dump-ir writes whole modules: each reads back, is valid, names the batch in its types,
# and has the same results after every pass, also printed and optimized once more: to the last bit
# with compile.exact, else as near as sums in another order are.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
ir=("$bin/paddle" ir)

# close FILE WANTED: the same text but for numbers that differ by at most 1e-4 of their size.
close() {
  awk 'NR == FNR { for (i = 1; i <= NF; ++i) wanted[FNR, i] = $i; next }
    { for (i = 1; i <= NF; ++i) { a = $i; b = wanted[FNR, i]; gsub(/[][,]/, "", a); gsub(/[][,]/, "", b)
        d = a - b; d = d < 0 ? -d : d; m = b < 0 ? -b : b
        if (a != b && !(a + 0 != 0 && d <= 1e-4 * m + 1e-6)) { print FILENAME ":" FNR ": " a " and " b; exit 1 } } }' \
    "$2" "$1" > "$folder/error"
}

for exact in true false; do
  "$train" configs/quickstart/digits.yaml "data.train={kind: digits, size: 128}" data.valid= train.steps=1 \
    "compile.exact=$exact" --output "$folder/run" --overwrite --dump-ir "$folder/ir.$exact" > "$folder/out" 2> "$folder/error" ||
    fail "training"
  same=cmp
  [[ $exact == true ]] || same=close
  first=""
  for file in "$folder/ir.$exact"/train.*.txt; do
    quiet 0 "${ir[@]}" verify "$file"
    grep -q 'float32\[batch, 10\]' "$file" || fail "$file lost the batch"
    "${ir[@]}" show "$file" > "$folder/shown" || fail "show $file"
    "${ir[@]}" show "$folder/shown" | cmp - "$folder/shown" || fail "$file prints otherwise when read again"
    [[ -n "$first" ]] || { python3 tests/cli/execution/make_inputs.py "$file" "$folder/x.npz" 6; first="$file"; }
    "${ir[@]}" run "$file" --input "$folder/x.npz" > "$folder/results" || fail "run of $file"
    grep -q '^loss: float32\[\] ' "$folder/results" || fail "no loss from $file"
    [[ "$file" != "$first" ]] || cp "$folder/results" "$folder/wanted"
    $same "$folder/results" "$folder/wanted" || fail "$file has other results"
  done
  "${ir[@]}" opt "$first" --output "$folder/again.txt" --overwrite || fail "opt"
  "${ir[@]}" run "$folder/again.txt" --input "$folder/x.npz" > "$folder/results" || fail "run after opt"
  close "$folder/results" "$folder/wanted" || fail "after opt"
done
# Clipping and the loss scale take no pass of their own: all that a step writes of the shape of a
# parameter is its gradient and the update.
cat > "$folder/clipped.yaml" << 'YAML'
model:
  inputs: {x: "float32[batch, 24]"}
  model: |
    logits = linear(relu(linear(x, 48)), 7)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: adamw, lr: 1e-3, weight_decay: 0.1}
data:
  batch_size: 16
  train: {kind: random, size: 64, fields: [{name: x, shape: [24]}, {name: label, dtype: int64, low: 0, high: 7}]}
train: {steps: 1}
YAML
for clip in value norm global_norm; do
  for mode in precision=float32 precision=f16 "precision=f16 amp.level=O2" "precision=bf16 amp.level=O2"; do
    read -ra options <<< "$mode"
    "$train" "$folder/clipped.yaml" "clip.$clip=0.5" "${options[@]}" --output "$folder/run" --overwrite \
      --dump-ir "$folder/ir.clip" > "$folder/out" 2> "$folder/error" || fail "training with clip.$clip"
    found="$(sed -n 's/^ *%.* = \([a-z_0-9]*\)([^)]*)[^:]* : [^(]*\[24, 48\].*/\1/p' "$folder"/ir.clip/train.*.schedule_updates_early.txt |
      sort | tr '\n' ' ')"
    low=""
    [[ $mode != precision=f16 ]] || low="cast "  # of the weight
    [[ "$found" == "adam_update ${low}matmul " ]] || fail "clip.$clip, $mode: a step writes $found"
  done
done
# Weights that are constants are in files that the texts share; with them every text computes what
# the first one does.
quiet 0 "$infer" models/digits_cnn.yaml --benchmark 1 --dump-ir "$folder/weights"
constants="$folder/weights/constants"
first=""
for file in "$folder"/weights/*.txt; do
  grep -q " = constant float32.* at 'constants/[0-9a-f]*\.safetensors'" "$file" || fail "$file has no constant by reference"
  ! grep -q "elided" "$file" || fail "$file lacks values"
  (($(wc -c < "$file") < 40000)) || fail "$file has weights in its text"
  quiet 0 "${ir[@]}" verify "$file"
  [[ -n "$first" ]] || { python3 tests/cli/execution/make_inputs.py "$file" "$folder/x.npz" 6; first="$file"; }
  "${ir[@]}" run "$file" --input "$folder/x.npz" > "$folder/results" || fail "run of $file"
  [[ "$file" != "$first" ]] || cp "$folder/results" "$folder/wanted"
  close "$folder/results" "$folder/wanted" || fail "$file has other results"
done
(($(ls "$constants" | wc -l) < 3 * $(grep -c " at 'constants/" "$first"))) || fail "constants are written more than once"
quiet 0 "${ir[@]}" opt "$first" --output "$folder/moved/opt.txt"
grep -q " at 'constants/" "$folder/moved/opt.txt" || fail "opt writes constants as text"
"${ir[@]}" run "$folder/moved/opt.txt" --input "$folder/x.npz" > "$folder/results" || fail "run of the optimized text"
close "$folder/results" "$folder/wanted" || fail "the optimized text has other results"
one="$(sed -n "s/.* at '\(constants[^']*\)'.*/\1/p" "$folder/moved/opt.txt" | head -1)"
sed "s|$one|../secret|" "$folder/moved/opt.txt" > "$folder/moved/outside.txt"
expect 5 "is not the file of a constant" "${ir[@]}" verify "$folder/moved/outside.txt"
sed "0,/constant float32\[/s//constant float32[1, /" "$folder/moved/opt.txt" > "$folder/moved/shape.txt"
expect 5 "" "${ir[@]}" verify "$folder/moved/shape.txt"
head -c 40 "$folder/moved/$one" > "$folder/cut" && cp "$folder/cut" "$folder/moved/$one"
expect 5 "$one" "${ir[@]}" verify "$folder/moved/opt.txt"
rm "$folder/moved/$one"
expect 5 "the file of a constant is missing" "${ir[@]}" verify "$folder/moved/opt.txt"
expect 2 "unknown pass 'cze' (did you mean 'cse'?)" "${ir[@]}" opt "$first" --passes cze
finish
