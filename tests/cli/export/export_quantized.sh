#!/usr/bin/env bash
# Quantized models leave as ONNX files in all forms: QDQ, integer operators, and MatMulNBits. Each
# file computes what the model does, and that of a saved run has the operators of the model itself.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
quant="$bin/paddle-quant"
export="$bin/paddle-export"
has() { grep -qaF "$2" "$folder/$1" || fail "$1 has no $2"; }
has_not() { grep -qaF "$2" "$folder/$1" && fail "$1 has $2"; }

cat > "$folder/net.yaml" <<'Y'
model:
  inputs: {image: "float32[batch, 3, 12, 12]"}
  model: |
    y = relu(conv2d(image, 16, 3, padding=1))
    y = relu(conv2d(y, 16, 3, stride=2, padding=1, groups=4))
    y = max_pool2d(y, 2)
    h = relu(linear(flatten(y, 1), 32))
    logits = linear(layer_norm(h), 5)
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: adamw, lr: 1e-3}
data:
  batch_size: 16
  train:
    kind: random
    size: 64
    fields: [{name: image, shape: [3, 12, 12]}, {name: label, dtype: int64, low: 0, high: 5}]
train: {steps: 4, log_every: 4}
Y
ok "$train" "$folder/net.yaml" --output "$folder/run"

# A run that is exported by a process that has computed nothing keeps its operators.
ok "$export" "$folder/run/model" -o "$folder/float.onnx"
has float.onnx LayerNormalization
has_not float.onnx ReduceMean

for scheme in int8 int8_dynamic int4_weights; do
  ok "$quant" "$folder/run" -o "$folder/$scheme" --scheme "$scheme" --no-check quant.measure=false
done
ok "$export" "$folder/int8/model" -o "$folder/qdq.onnx"
has qdq.onnx DequantizeLinear
ok "$export" "$folder/int8/model" -o "$folder/integer.onnx" --format qoperator
grep -q "layers are integer operators" "$folder/out" || fail "the layers should be counted"
for operator in QLinearConv QGemm; do has integer.onnx "$operator"; done
ok "$export" "$folder/int8_dynamic/model" -o "$folder/dynamic.onnx"
has dynamic.onnx DynamicQuantizeLinear
ok "$export" "$folder/int8_dynamic/model" -o "$folder/sums.onnx" --format qoperator
has sums.onnx MatMulInteger
# An imported file keeps the types of its zero points.
ok "$export" "$folder/qdq.onnx" -o "$folder/again.onnx"
ok "$bin/paddle-onnx" diff "$folder/qdq.onnx" "$folder/again.onnx" --check 2

# paddle-quant writes the forms itself, so that weights of 4 bits stay packed.
ok "$quant" "$folder/run" -o "$folder/four.onnx" --scheme int4_weights --format nbits --no-check \
  quant.measure=false
has four.onnx MatMulNBits
ok "$quant" "$folder/run" -o "$folder/four_qdq.onnx" --scheme int4_weights --no-check quant.measure=false
ok "$bin/paddle-onnx" diff "$folder/four_qdq.onnx" "$folder/four.onnx" --check 2 --rtol 1e-4 --atol 1e-5
ok "$quant" "$folder/run" -o "$folder/groups.onnx" --scheme int4_weights --format nbits --no-check \
  quant.measure=false quant.weights.group=16 quant.weights.symmetric=false
has groups.onnx zero_points
# Weights of 4 bits that are read back stay integers, also in groups.
ok "$quant" "$folder/run" -o "$folder/groups_qdq.onnx" --scheme int4_weights --no-check \
  quant.measure=false quant.weights.group=16 quant.weights.symmetric=false
for name in four_qdq groups_qdq; do
  ok "$export" "$folder/$name.onnx" -o "$folder/again.onnx" --overwrite
  has again.onnx DequantizeLinear
  ok "$bin/paddle-onnx" diff "$folder/$name.onnx" "$folder/again.onnx" --check 2 --rtol 1e-4 --atol 1e-5
done

# Targets reject what is too new for them.
ok "$export" "$folder/run" -o "$folder/target.onnx" --target ort-1.17
expect 2 "did you mean 'ort-1.17'" "$export" "$folder/run" -o "$folder/x.onnx" --target ort-1.7
expect 2 "--opset 21: ort-1.17 has 20" "$export" "$folder/run" -o "$folder/x.onnx" --target ort-1.17 \
  --opset 21
cat > "$folder/new.yaml" <<'Y'
inputs: {q: "float32[1, 2, 4, 8]"}
model: |
  y = quantize(q, 0.5, 0, dtype="int16")
outputs: [y]
Y
expect 2 "needs opset 21, ort-1.17 has 20" "$export" "$folder/new.yaml" -o "$folder/x.onnx" \
  --target ort-1.17
[[ ! -e "$folder/x.onnx" ]] || fail "a rejected export left a file"
finish
