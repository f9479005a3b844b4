#!/usr/bin/env bash
# What --dump-ir writes are whole modules: each reads back, is valid, names the batch in its types,
# and gives the same results after every pass, also printed and optimised once more.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/expect.bash"
"$train" configs/quickstart/digits.yaml "data.train={kind: digits, size: 128}" data.valid= train.steps=1 \
  --output "$folder/run" --dump-ir "$folder/ir" > "$folder/out" 2> "$folder/error" || fail "training"

ir=("$bin/paddle" ir)
first=""
for file in "$folder"/ir/train.*.txt; do
  quiet 0 "${ir[@]}" verify "$file"
  grep -q 'float32\[batch, 10\]' "$file" || fail "$file lost the batch"
  "${ir[@]}" show "$file" > "$folder/shown" || fail "show $file"
  "${ir[@]}" show "$folder/shown" | cmp - "$folder/shown" || fail "$file prints otherwise when read again"
  [[ -n "$first" ]] || { python3 tests/cli/make_inputs.py "$file" "$folder/x.npz" 6; first="$file"; }
  "${ir[@]}" run "$file" --input "$folder/x.npz" > "$folder/results" || fail "run of $file"
  grep -q '^loss: float32\[\] ' "$folder/results" || fail "no loss from $file"
  [[ "$file" == "$first" ]] && cp "$folder/results" "$folder/wanted"
  cmp "$folder/wanted" "$folder/results" || fail "$file gives other results"
done
"${ir[@]}" opt "$first" --output "$folder/again.txt" || fail "opt"
"${ir[@]}" run "$folder/again.txt" --input "$folder/x.npz" | cmp "$folder/wanted" - || fail "after opt"
expect 2 "unknown pass 'cze' (did you mean 'cse'?)" "${ir[@]}" opt "$first" --passes cze
finish
