#!/usr/bin/env bash
# Models that scikit-learn and skl2onnx export, and operators of ai.onnx.ml, against what ONNX
# Runtime gives for them (tests/interop/make_ml_models.py); strings and maps through NPZ files; a
# graph without inputs.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
"$bin/paddle-onnx" check tests/data/onnx_ml || failures=1
"$bin/paddle-onnx" check tests/data/onnx_ml --eager || failures=1
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
python3 tests/cli/export/onnx_ml_files.py write "$folder" || failures=1
quiet 0 "$infer" "$folder/zip_map.onnx" --input "$folder/x.npz" --output "$folder/maps.npz"
quiet 0 "$infer" "$folder/mapper.onnx" --input "$folder/words.npz" --output "$folder/numbers.npz"
quiet 0 "$infer" "$folder/words.onnx" --input "$folder/numbers.npz" --output "$folder/back.npz"
quiet 0 "$infer" "$folder/dict.onnx" --input "$folder/map.npz" --output "$folder/dict.npz"
quiet 0 "$infer" "$folder/constant.onnx" --output "$folder/constant.npz"
python3 tests/cli/export/onnx_ml_files.py check "$folder" || failures=1
quiet 0 "$infer" "$folder/words.onnx" --input "$folder/numbers.npz"
grep -qF 'y: [äb, b]' "$folder/out" || fail "strings are not listed:"
quiet 0 "$infer" "$folder/constant.onnx"
grep -qF 'y: ' "$folder/out" || fail "the outputs of a graph without inputs are not listed:"
quiet 0 "$infer" "$folder/constant.onnx" --benchmark 2
expect 4 "has no array 'x'; the model takes 'x' float32[n, 2]" "$infer" "$folder/zip_map.onnx" --input "$folder/words.npz"
expect 4 "Python objects are not supported" "$infer" "$folder/mapper.onnx" --input "$folder/objects.npz"
expect 4 "'y' is float32[1], expected string" "$infer" "$folder/mapper.onnx" --input "$folder/floats.npz"
expect 4 "has no array 'y'" "$infer" "$folder/mapper.onnx" --input "$folder/x.npz"
expect 2 ".npz" "$infer" "$folder/words.onnx" --input "$folder/numbers.npz" --output "$folder/y.csv"
finish
