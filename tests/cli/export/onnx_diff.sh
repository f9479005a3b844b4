#!/usr/bin/env bash
# paddle onnx diff: equal files, other weights, another opset, other inputs; and files in 16 bits.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
export_model="$bin/paddle-export"
diff_onnx() { "$bin/paddle-onnx" diff "$@" > "$folder/out" 2> "$folder/error"; }
says() { grep -qF -- "$1" "$folder/out" || { cat "$folder/out"; fail "the output does not say '$1'"; }; }
make() { quiet 0 "$export_model" models/lenet.yaml --no-check "${@:2}" -o "$folder/$1.onnx"; }
make a
make b
make seed --seed 1
make late --opset 18
make half --dtype float16
make fixed --dim batch=3
quiet 0 "$export_model" models/digits_cnn.yaml --no-check -o "$folder/other.onnx"
cd "$folder" || exit 1

diff_onnx a.onnx b.onnx || fail "equal files differ"
says "the graphs and weights are the same"
diff_onnx a.onnx b.onnx --check 0 || fail "equal files differ without a run"
diff_onnx a.onnx seed.onnx && fail "other weights are not seen"
says "weights:"
says "output 'logits': largest difference"
diff_onnx a.onnx late.onnx || fail "another opset gives other results"
says "opset: 17 against 18"
diff_onnx a.onnx late.onnx --check 0 && fail "another opset is not seen"
diff_onnx a.onnx half.onnx --rtol 0.1 --atol 0.05 || fail "16 bits are far off"
says "Cast: 0 against"
diff_onnx a.onnx half.onnx --rtol 1e-6 --atol 1e-7 && fail "16 bits are not seen"
diff_onnx a.onnx fixed.onnx && fail "a fixed dim is not seen"
says "input 'image': float32[batch, 1, 28, 28] against float32[3, 1, 28, 28]"
diff_onnx a.onnx seed.onnx --json
python3 - "$folder/out" <<'P' || fail "--json"
import json, sys
diff = json.loads(open(sys.argv[1]).read().splitlines()[-1])
assert not diff["same_structure"] and not diff["same_results"], diff
assert diff["outputs"][0]["name"] == "logits" and diff["outputs"][0]["absolute"] > 0, diff
P
expect 5 "" "$bin/paddle-onnx" diff a.onnx nowhere.onnx
expect 2 "" "$bin/paddle-onnx" diff a.onnx
head -c 300 a.onnx > cut.onnx
expect 5 "cut.onnx" "$bin/paddle-onnx" diff a.onnx cut.onnx
finish
