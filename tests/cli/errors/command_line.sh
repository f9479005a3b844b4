#!/usr/bin/env bash
# The command line of all commands: one program, help, options and keys that do not exist.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
paddle="$bin/paddle"
good=configs/quickstart/digits.yaml

# ---- one program ----------------------------------------------------------------------------------

for link in "$bin"/paddle-*; do
  [[ "$(readlink -f "$link")" == "$(readlink -f "$paddle")" ]] || fail "$link is another program"
  name="$(basename "$link")"
  "$link" --help > "$folder/a" 2>&1 || fail "$link --help"
  "$paddle" help "${name#paddle-}" > "$folder/b" 2>&1 || fail "paddle help ${name#paddle-}"
  cmp -s "$folder/a" "$folder/b" || fail "paddle help ${name#paddle-} is another text"
done
# Without the links, too.
mkdir "$folder/bin"
ln -s "$(readlink -f "$paddle")" "$folder/bin/paddle"
(PATH="$folder/bin"; "$folder/bin/paddle" train --version > "$folder/out") || fail "paddle train"
expect 2 "unknown command 'trian' (did you mean 'train'?)" "$paddle" trian
expect 2 "unknown command 'trian'" "$paddle" help trian
expect 2 "unknown command 'bild' (did you mean 'build'?) (see paddle-plugin --help)" "$bin/paddle-plugin" bild x
expect 2 "unknown command 'bild'" "$bin/paddle-plugin" --threads 1 bild --output x

# ---- output that cannot be written ----------------------------------------------------------------

status=0
"$train" --help > /dev/full 2> "$folder/error" || status=$?
[[ "$status" == 6 ]] || fail "--help into a full disk gave $status"

# ---- options --------------------------------------------------------------------------------------

expect 2 "--outptu (did you mean '--output'?)" "$train" "$good" --outptu x
launch="$bin/paddle-launch"
expect 2 "--losg (did you mean '--logs'?)" "$launch" -n 2 --losg echo hello
expect 2 "--restart (did you mean '--restarts'?)" "$launch" -n 2 --restart 3 echo hello
expect 2 "--bogus" "$launch" -n 2 --bogus=1 echo hello
ok "$launch" -n 2 --threads 1 --logs "$folder/logs" echo --losg
grep -qx -- "--losg" "$folder/logs/rank-0.log" || fail "the options of the command are its own"
small=("data.train={kind: digits, size: 64}" data.valid= data.batch_size=16 epochs=1)
ok "$launch" -n 2 --simulate paddle-train "$good" "${small[@]}" parallel.data=2 --output "$folder/simulated"

# ---- keys -----------------------------------------------------------------------------------------

ok "$train" "$good" "${small[@]}" lr=1e-4 batch_size=8 --output "$folder/keys" --dry-run
ok "$train" "$good" "${small[@]}" lr=1e-4 batch_size=8 --output "$folder/keys"
for line in "lr: 1e-4" "batch_size: 8" "epochs: 1"; do
  grep -q "$line" "$folder/keys/config.yaml" || fail "no $line in the resolved config"
done
expect 3 "the value is null" "$train" "$good" optimizer.lr=null --dry-run
expect 3 "at most" "$train" "$good" train.epochs=9223372036854775807 --dry-run
expect 3 "'name' is missing" "$train" "$good" "schedule={warmup: 2}" --dry-run

# Another optimizer takes the place of the one of the base.
cat > "$folder/base.yaml" <<'Y'
model: {inputs: {image: "float32[batch, 1, 28, 28]"}, model: [flatten, {linear: 10}], outputs: [logits]}
loss: cross_entropy(logits, label)
optimizer: {name: momentum, lr: 0.05, momentum: 0.8}
data: {batch_size: 16, train: {kind: digits, size: 80, seed: 1}}
train: {steps: 2}
Y
printf 'extends: base.yaml\noptimizer: {name: adam, lr: 0.001}\n' > "$folder/child.yaml"
printf 'extends: base.yaml\noptimizer: {lr: 0.001}\n' > "$folder/same.yaml"
ok "$train" "$folder/child.yaml" --dump-config
grep -q "name: adam" "$folder/out" && ! grep -q "momentum" "$folder/out" || fail "a child cannot choose its optimizer"
ok "$train" "$folder/same.yaml" --dump-config
grep -q "momentum: 0.8" "$folder/out" || fail "keys of the base are lost"

# -o is --output everywhere, and the usual names of dtypes are accepted.
for tool in train infer sweep lr-range average export quant new tokenize profile tune; do
  "$bin/paddle-$tool" --help > "$folder/out"
  grep -q -- "-o,--output" "$folder/out" || fail "paddle-$tool has no -o"
done
ok "$train" "$good" "${small[@]}" -o "$folder/short"
model="$folder/short/model"
ok "$bin/paddle-infer" "$model" --benchmark 1 --precision bf16
ok "$bin/paddle-infer" "$model" --benchmark 1 --precision fp16
expect 2 "--precision" "$bin/paddle-infer" "$model" --benchmark 1 --precision int8
ok "$bin/paddle-export" "$model" --dtype bf16 --dry-run
ok "$bin/paddle-quant" "$model" --scheme bfloat16 --dry-run
ok "$bin/paddle-quant" "$model" --scheme half --dry-run
expect 2 "is not a scheme" "$bin/paddle-quant" "$model" --scheme float64 --dry-run

# Options have groups, and ranges without an upper bound show none.
"$bin/paddle-infer" --help > "$folder/out"
grep -q "^Text generation:" "$folder/out" || fail "no groups in paddle-infer --help"
grep -q -- "--benchmark INT >= 1" "$folder/out" || fail "the range of --benchmark"
grep -Eq "Excludes|1099511627776" "$folder/out" && fail "noise in paddle-infer --help"
"$bin/paddle" --help > "$folder/out"
grep -q "^Training:" "$folder/out" || fail "no groups in paddle --help"
finish
