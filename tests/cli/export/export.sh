#!/usr/bin/env bash
# paddle-export: models agree with their files on several bindings, the files are the same bytes each
# time, operations of all case tables agree with their files, and what is rejected leaves nothing.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
export_model="$bin/paddle-export"

# --- models ---
for model in lenet digits_cnn char_gpt char_lstm deepfm; do
  ok "$export_model" "models/$model.yaml" -o "$folder/$model.onnx"
  ok "$export_model" "models/$model.yaml" -o "$folder/again.onnx" --overwrite
  cmp -s "$folder/$model.onnx" "$folder/again.onnx" || fail "$model: the bytes differ between two exports"
done
ok "$export_model" models/resnet.yaml params.depth=[1,1,1,1] params.width=8 -o "$folder/resnet.onnx"
ok "$export_model" models/bert.yaml params.layers=2 params.width=32 params.heads=2 params.vocab_size=100 \
  -o "$folder/bert.onnx"
# A model file of each form of the language: control flow, states, indexing, run-time sizes.
for model in tests/model/good/{flow_if,flow_while,flow_jumps,flow_nested_loops,flow_early_return,flow_states}.yaml \
    tests/model/good/{index_basic,index_tensors,index_assignment,dims_arithmetic,states,functions}.yaml; do
  ok "$export_model" "$model" -o "$folder/good.onnx" --overwrite
done
ok "$export_model" models/lenet.yaml -o "$folder/fixed.onnx" --dim batch=4 --metadata license=MIT
ok "$export_model" models/lenet.yaml -o "$folder/big.onnx" --external-data always --json
[[ -s "$folder/big.onnx.data" ]] || fail "no external data"
# An imported file is exported again.
ok "$export_model" "$folder/lenet.onnx" -o "$folder/twice.onnx"
python3 - "$folder/lenet.onnx.report.json" <<'P' || fail "the report"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["opset"] == 17 and report["nodes"] < 20, report
assert [c["passed"] for c in report["checks"]] == [True] * 3, report
P

# --- opsets before the default ---
cat > "$folder/gates.yaml" <<'Y'
inputs: {x: "float32[batch, length, 8]"}
model: |
  y = layer_norm(x) + hardswish(x)
  heads = linear(y, 24, name="qkv").reshape([batch, length, 3, 2, 4])
  y = attention(heads[:, :, 0], heads[:, :, 1], heads[:, :, 2], is_causal=true)
  return y.reshape([batch, length, 8]) + rms_norm(y.reshape([batch, length, 8]), 8)
Y
for opset in 13 14 15 16; do
  for model in lenet char_gpt char_lstm deepfm; do
    ok "$export_model" "models/$model.yaml" -o "$folder/early.onnx" --overwrite --opset $opset
  done
  ok "$export_model" models/bert.yaml params.layers=2 params.width=32 params.heads=2 params.vocab_size=100 \
    -o "$folder/early.onnx" --overwrite --opset $opset
  ok "$export_model" models/resnet.yaml params.depth=[1,1,1,1] params.width=8 -o "$folder/early.onnx" --overwrite --opset $opset
  ok "$export_model" "$folder/gates.yaml" -o "$folder/early.onnx" --overwrite --opset $opset
  grep -q "\"opset\": *$opset" "$folder/early.onnx.report.json" || fail "the file has not opset $opset"
done

# --- operations ---
for table in tests/op/cases/*.jsonl; do
  "$bin/paddle" op export "$table" -o "$folder/op" --check > "$folder/lines" 2> "$folder/error"
  grep -E ": error: " "$folder/lines" | grep -vE "^(floor_divide/15|selu/[26]): " > "$folder/bad" && {
    head -5 "$folder/bad"
    fail "$table: exported operations differ"
  }
done

# --- a trained run ---
ok "$train" configs/quickstart/digits.yaml --output "$folder/run" "data.train={kind: digits, size: 64}" data.valid= \
  train.epochs=1
ok "$export_model" "$folder/run" -o "$folder/run.onnx"

# The first token of a text has no axis in the file either, from a run as from its model file.
cat > "$folder/first.yaml" <<'Y'
name: first
model:
  name: first
  inputs: {x: "float32[batch, length, 4]"}
  model: |
    y = x + param("positions", [16, 4])[:length]
    z = linear(y[:, 0], 2)
  outputs: [z]
loss: mean(square(z))
optimizer: {name: sgd, lr: 0.01}
data: {batch_size: 2, train: {kind: random, size: 2, fields: [{name: x, dtype: float32, shape: [7, 4]}]}}
train: {steps: 1}
Y
ok "$train" "$folder/first.yaml" --output "$folder/first"
ok "$export_model" "$folder/first" -o "$folder/first.onnx"
ok "$export_model" "$folder/first" -o "$folder/first7.onnx" --dim length=7

# --- a run with its transforms: raw pixels in ---
ok "$export_model" "$folder/run" -o "$folder/raw.onnx" --with-preprocess
"$bin/paddle-show" "$folder/raw.onnx" | grep -q "image.*uint8" || fail "the input is not the raw field"
source "$(dirname "${BASH_SOURCE[0]}")/export_transforms.bash"
ok "$export_model" "$folder/pictures" -o "$folder/pictures.onnx" --with-preprocess
grep -q "Resize with antialiasing" "$folder/out" || fail "the reason for the opset is not said"
ok "$export_model" "$folder/texts" -o "$folder/texts.onnx" --with-preprocess --check 8
"$bin/paddle-show" "$folder/texts.onnx" | grep -q "text.*string" || fail "the input is not a text"
expect 2 "needs opset 18" "$export_model" "$folder/pictures" -o "$folder/x.onnx" --with-preprocess --opset 17
expect 2 "--with-preprocess is for the models of runs" "$export_model" models/lenet.yaml -o "$folder/x.onnx" \
  --with-preprocess

# --- 16 bits ---
for dtype in float16 bfloat16; do
  ok "$export_model" models/digits_cnn.yaml -o "$folder/$dtype.onnx" --dtype "$dtype"
  (($(stat -c %s "$folder/$dtype.onnx") * 10 < $(stat -c %s "$folder/digits_cnn.onnx") * 6)) || fail "$dtype: the file is large"
done
ok "$export_model" models/digits_cnn.yaml -o "$folder/kept.onnx" --dtype float16 --keep-float 'linear.*'
(($(stat -c %s "$folder/kept.onnx") > $(stat -c %s "$folder/float16.onnx"))) || fail "--keep-float keeps nothing"
expect 2 "matches no operation" "$export_model" models/digits_cnn.yaml -o "$folder/x.onnx" --dtype float16 --keep-float 'linaer.*'
expect 2 "--keep-float needs" "$export_model" models/digits_cnn.yaml -o "$folder/x.onnx" --keep-float 'linear.*'
expect 2 "--dtype" "$export_model" models/digits_cnn.yaml -o "$folder/x.onnx" --dtype float61

# --- rejections ---
expect 2 "already exists" "$export_model" models/lenet.yaml -o "$folder/lenet.onnx"
expect 2 "no such file" "$export_model" nowhere.yaml -o "$folder/x.onnx"
expect 2 "no such dim (did you mean 'batch'?)" "$export_model" models/lenet.yaml -o "$folder/x.onnx" --dim bach=3
expect 2 "given twice" "$export_model" models/lenet.yaml -o "$folder/x.onnx" --dim batch=3 --dim batch=4
expect 2 "expected NAME=SIZE" "$export_model" models/lenet.yaml -o "$folder/x.onnx" --dim batch
expect 2 "ends in .onnx" "$export_model" models/lenet.yaml -o "$folder/x"
expect 2 "no model is given" "$export_model"
expect 2 "no file is given" "$export_model" models/lenet.yaml
PADDLE_ONNXRUNTIME="$folder/nowhere.so" expect 2 "cannot be opened" "$export_model" models/lenet.yaml \
  -o "$folder/x.onnx" --check-with onnxruntime
expect 2 "opset" "$export_model" models/lenet.yaml -o "$folder/x.onnx" --opset 12
cat > "$folder/bits.yaml" <<'Y'
inputs: {x: "int64[batch]", y: "int64[batch]"}
model: |
  return bitwise_and(x, y)
Y
expect 2 "BitwiseAnd needs opset 18, --opset is 13" "$export_model" "$folder/bits.yaml" -o "$folder/x.onnx" --opset 13
expect 2 "give it with --dim" "$export_model" tests/model/good/dims_static.yaml -o "$folder/x.onnx"
expect 6 "" "$export_model" models/lenet.yaml -o /proc/x.onnx
cat > "$folder/no_form.yaml" <<'Y'
inputs: {x: "float32[n, 4]"}
model: |
  y = lgamma(x)
  return digamma(y)
Y
expect 5 "2 operations have no ONNX form" "$export_model" "$folder/no_form.yaml" -o "$folder/x.onnx"
grep -q "no_form.yaml:3:.*lgamma" "$folder/error" || fail "the list does not say the line"
[[ ! -e "$folder/x.onnx" && ! -e "$folder/x.onnx.unchecked.onnx" ]] || fail "a rejected export left a file"
"$export_model" --list-ops > "$folder/forms" || fail "--list-ops without a model"
(($(grep -cE "^(native|decomposed|none) +[a-z]" "$folder/forms") > 700)) || fail "--list-ops lists all"
"$export_model" models/char_gpt.yaml --list-ops > "$folder/forms"
grep -q "^native *attention" "$folder/forms" || fail "--list-ops"
finish
