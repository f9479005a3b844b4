#!/usr/bin/env bash
# Files of paddle-export, run by ONNX Runtime: training steps with the losses of the run, models in
# 16 bits, and the transforms of a run. Needs libonnxruntime.so, which PADDLE_ONNXRUNTIME names, or the
# Python package onnxruntime.
set -uo pipefail
source tests/cli/expect.bash
if [[ -z "${PADDLE_ONNXRUNTIME:-}" ]]; then
  PADDLE_ONNXRUNTIME="$(python3 -c 'import glob, importlib.util, os
spec = importlib.util.find_spec("onnxruntime")
print((sorted(glob.glob(os.path.join(os.path.dirname(spec.origin), "capi", "libonnxruntime.so*"))) or [""])[0] if spec else "")')"
fi
[[ -n "$PADDLE_ONNXRUNTIME" ]] || { echo "there is no ONNX Runtime"; exit 77; }
export PADDLE_ONNXRUNTIME
agrees() {
  local name="$1" file="$folder/$1.onnx"
  shift
  local status
  status="$(run_bounded "$bin/paddle-export" "$@" -o "$file" --check-with onnxruntime)"
  [[ "$status" == 0 ]] || { cat "$folder/out"; fail "$name: $* gave $status"; }
}
trains() { local name="$1"; shift; agrees "$name" --training "$@" --check 20; }
source tests/cli/export/export_training_runs.bash

for model in lenet digits_cnn char_gpt char_lstm deepfm; do agrees "$model" "models/$model.yaml"; done
agrees lenet16 models/lenet.yaml --dtype float16
agrees bert models/bert.yaml params.layers=2 params.width=32 params.heads=2 params.vocab_size=100
for model in mobilenet_v3 squeezenet shufflenet_v2 efficientnet; do
  agrees "$model" "models/vision/$model.yaml" --dim rows=64 --dim columns=64
done
for opset in 13 14 15 16; do
  for model in char_gpt char_lstm; do agrees "$model-$opset" "models/$model.yaml" --opset $opset; done
  agrees "mobilenet-$opset" models/vision/mobilenet_v3.yaml --dim rows=64 --dim columns=64 --opset $opset
done
# Sums of 8-bit weights overflow in ONNX Runtime on processors without integer dot products.
"$train" configs/quickstart/digits.yaml --output "$folder/digits" train.epochs=1 \
  "data.train={kind: digits, size: 2000, seed: 1}" "data.valid={kind: digits, size: 100, seed: 2}" \
  > "$folder/out" 2> "$folder/error" || fail "digits"
"$bin/paddle-quant" "$folder/digits" -o "$folder/int8" --target onnxruntime-avx2 --no-check \
  > "$folder/out" 2> "$folder/error" || fail "digits in int8"
agrees integer "$folder/int8/model" --format qoperator
source tests/cli/export/export_transforms.bash
agrees transforms "$folder/pictures" --with-preprocess
agrees texts "$folder/texts" --with-preprocess --check 8
finish
