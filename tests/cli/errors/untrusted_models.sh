#!/usr/bin/env bash
# Models, modules, rules and names that come from others: operations that access files are errors,
# control characters do not reach the terminal, and runs replace no files that they have not written.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
paddle="$bin/paddle"

# ---- operations that access files, other ranks or the terminal ------------------------------------

secret="$folder/secret"
echo "the secret" > "$secret"
printf 'x\n1\n2\n' > "$folder/rows.csv"
model() { printf '%b' "$1" > "$folder/m.yaml"; }
read_file="read_file(filename=\"$secret\")"
model "inputs: {x: \"float32[batch, 1]\"}\nmodel: |\n  y = $read_file\noutputs: [y]\n"
expect 3 "m.yaml:3:7: the operation 'read_file' accesses files" "$infer" "$folder/m.yaml" --benchmark 1
model "inputs: {x: \"float32[batch, 1]\"}\nblocks:\n  leak(x): |\n    return cast($read_file, \"float32\")\nmodel: |\n  y = leak(x)\noutputs: [y]\n"
expect 3 "the operation 'read_file' accesses files" "$infer" "$folder/m.yaml" --benchmark 1

config() {
  cat > "$folder/c.yaml" <<YAML
model: {inputs: {x: "float32[batch, 1]"}, model: [{linear: 1}], outputs: [y]}
$1
optimizer: {name: sgd, lr: 0.1}
data: {train: {kind: csv, path: rows.csv, fields: [{name: x}]}}
train: {epochs: 1}
YAML
}
config "step: |
  y = model(x)
  update(mean(y) + 0 * sum(cast($read_file, \"float32\")))"
expect 3 "accesses files" "$train" "$folder/c.yaml" --output "$folder/run"
config "loss: mse_loss(y, x)
metrics: {leak: 'average(cast($read_file, \"float32\"))'}"
expect 3 "accesses files" "$train" "$folder/c.yaml" --output "$folder/run"
[[ ! -e "$folder/run" ]] || fail "a rejected run left a folder"

config "loss: mse_loss(y, x)"
ok "$train" "$folder/c.yaml" --output "$folder/run"
ok "$infer" "$folder/run" "$folder/rows.csv" --output "$folder/y.csv"
for body in "read_file() {filename = '$secret'} : uint8[n]" \
            "comm.all_gather(%0) {ranks = [0], axis = 0, sizes = [1]} : float32[batch, 1]"; do
  rm -rf "$folder/model"
  cp -r "$folder/run/model" "$folder/model"
  cat > "$folder/model/module.txt" <<MODULE
module 'm' {
  func 'predict'(
      %0 : float32[batch, 1] 'x') {
    %9 = $body
    return %0 'y', %9 'leak'
  }
}
MODULE
  expect 5 "module.txt:4:" "$infer" "$folder/model" "$folder/rows.csv" --output "$folder/y.csv"
  grep -q "which a model is not allowed to do" "$folder/error" || fail "a module is not checked"
done
printf 'leak: relu(x) => read_file(filename="%s")\n' "$secret" > "$folder/bad.rules"
status="$(run_bounded "$paddle" ir "$folder/run/model/module.txt" --rules "$folder/bad.rules" --print)"
[[ "$status" != 0 ]] || fail "a rule may read files"
# The user's own command line may name any operation.
ok "$paddle" op run read_file "filename=$secret"

# A file of another kind is not quoted.
model "include: [secret]\ninputs: {x: \"float32[batch, 1]\"}\nmodel: [{linear: 1}]\n"
expect 3 "must name a .yaml, .yml or .json file" "$infer" "$folder/m.yaml" --benchmark 1
! grep -q "the secret" "$folder/error" || fail "an included file is quoted"

# ---- names ---------------------------------------------------------------------------------------

python3 - "$folder" <<'PY'
import json, struct, sys
escape = "\x1b]0;owned\x07\x1b[31m"
entries = {"a" + escape: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
           "line\nerror: forged": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}
header = json.dumps(entries).encode()
with open(sys.argv[1] + "/e.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header + b"\0" * 8)
PY
printf 'x\x1b[31m,y\n1,a\n2,b\n' > "$folder/e.csv"
no_controls() {
  "$@" > "$folder/out" 2> "$folder/error"
  ! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' "$folder/out" "$folder/error" || fail "$* prints control characters"
}
no_controls "$bin/paddle-convert" "$folder/e.safetensors" "$folder/e.npz" --dry-run
grep -q 'a\\x1b]0;owned' "$folder/out" || fail "the escaped name is not there"
! grep -q '^error: forged' "$folder/out" || fail "a name forges a line"
no_controls "$paddle" new tabular-classification --data "$folder/e.csv" -o "$folder/e.yaml"

# ---- files of the user ----------------------------------------------------------------------------

mkdir "$folder/work"
cp "$folder/rows.csv" "$folder/work"
config "loss: mse_loss(y, x)"
{ echo "# my comment"; cat "$folder/c.yaml"; } > "$folder/work/config.yaml"
cp "$folder/work/config.yaml" "$folder/before.yaml"
(cd "$folder/work" && expect 2 "is the config itself" "$train" config.yaml --output .)
(cd "$folder/work" && expect 2 "is the config itself" "$train" config.yaml --output . --overwrite)
cmp -s "$folder/work/config.yaml" "$folder/before.yaml" || fail "the user's config was changed"
mv "$folder/work/config.yaml" "$folder/work/mine.yaml"
mkdir "$folder/work/model"
echo mine > "$folder/work/model/mine.yaml"
for option in "" --overwrite; do
  (cd "$folder/work" && expect 2 "was not written by a run" "$train" mine.yaml --output . $option)
done
[[ -e "$folder/work/model/mine.yaml" ]] || fail "a file of the user is gone"
rm -r "$folder/work/model"
(cd "$folder/work" && ok "$train" mine.yaml --output . && ok "$train" mine.yaml --output . --overwrite)
finish
