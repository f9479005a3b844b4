#!/usr/bin/env bash
# paddle-checkpoint verify: whole checkpoints, each kind of damage, and other folders.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
checkpoint="$bin/paddle-checkpoint"
ok "$train" configs/quickstart/digits.yaml --output "$folder/run" train.steps=6 train.checkpoint_every=2 \
  "data.train={kind: digits, size: 200}" "data.valid={kind: digits, size: 50}"
ok "$checkpoint" verify "$folder/run"
grep -c whole "$folder/out" | grep -qx 3 || { cat "$folder/out"; fail "three whole checkpoints"; }
ok "$checkpoint" verify "$folder/run/checkpoints/4" --json
grep -q '"problems":\[\]' "$folder/out" || fail "--json"

files="$folder/run/checkpoints/4"
cp -r "$files" "$folder/saved"
damaged() {
  [[ "$(run_bounded "$checkpoint" verify "$folder/run")" == 1 ]] || fail "no exit code 1"
  grep -q "$1" "$folder/out" || { cat "$folder/out"; fail "$1 is not reported"; }
  rm -rf "$files"
  cp -r "$folder/saved" "$files"
}
printf 'x' | dd of="$files/model.safetensors" bs=1 seek=5000 conv=notrunc 2> /dev/null
damaged "4/model.safetensors: is damaged"
truncate -s -1 "$files/optimizer.safetensors"
damaged "4/optimizer.safetensors: is damaged"
rm "$files/module.txt"
damaged "4/module.txt"
echo '{"files": {"config.yaml": 3}}' > "$files/state.json"
damaged "4/state.json: has no checksum of module.txt"
echo '{' > "$files/state.json"
damaged "4/state.json: is damaged"
sed -i 's/"files"/"no_files"/' "$files/state.json"
damaged "4/state.json: has no checksums"
expect 2 "is neither a checkpoint nor a run with checkpoints" "$checkpoint" verify "$folder"
expect 2 "subcommand" "$checkpoint"
finish
