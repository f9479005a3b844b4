#!/usr/bin/env bash
# paddle-export of exported files: a Gemm and an LSTM stay one node however often they are exported,
# and graphs whose course depends on the data are written as they are.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
export_model="$bin/paddle-export"

model() { # NAME INPUTS OUTPUTS, the lines of the model on standard input
  { printf 'name: %s\ninputs: %s\nmodel: |\n' "$1" "$2"; sed 's/^/  /'; printf 'outputs: %s\n' "$3"; } > "$folder/$1.yaml"
}
nodes() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["nodes"])' "$folder/$1.onnx.report.json"; }
operators() { "$bin/paddle-show" "$folder/$1.onnx"; }

# --- one node each ---
model lstm '{x: "float32[batch, length, 4]"}' '[y]' <<'M'
y, s = lstm(x, 6)
M
model gemm '{x: "float32[batch, 4]"}' '[y]' <<'M'
y = linear(relu(linear(x, 6)), 3)
M
model gru '{x: "float32[batch, length, 4]"}' '[y]' <<'M'
y, h = gru(x, 5)
M
for name in lstm gemm gru; do
  ok "$export_model" "$folder/$name.yaml" --seed 3 -o "$folder/${name}_1.onnx"
  for turn in 1 2 3; do
    ok "$export_model" "$folder/${name}_$turn.onnx" -o "$folder/${name}_$((turn + 1)).onnx"
  done
  for turn in 2 3 4; do
    [[ "$(nodes "${name}_1")" == "$(nodes "${name}_$turn")" ]] || \
      fail "$name has $(nodes "${name}_1") nodes, then $(nodes "${name}_$turn")"
  done
done
(($(nodes lstm_1) <= 6)) || fail "an LSTM has $(nodes lstm_1) nodes"
[[ "$(nodes gemm_1)" == 3 ]] || fail "two products and a Relu are $(nodes gemm_1) nodes"

# --- graphs that are not one function ---
model halve '{x: "float32[n]"}' '[y]' <<'M'
y = x
while sum(y) > 1.0:
  y = y * 0.5
M
model places '{x: "float32[batch, n]"}' '[y]' <<'M'
y = x + arange(0, n, 1, dtype="float32")
M
model selection '{boxes: "float32[1, n, 4]", scores: "float32[1, 2, n]"}' '[y]' <<'M'
y = box_selection(boxes, scores, 3, 0.5)
M
for name in halve places selection; do
  ok "$export_model" "$folder/$name.yaml" -o "$folder/$name.onnx"
  ok "$export_model" "$folder/$name.onnx" -o "$folder/again.onnx" --overwrite
  grep -q "agrees with the model" "$folder/out" || fail "$name: the copy is not compared"
done
ok "$export_model" "$folder/halve.onnx" -o "$folder/fixed.onnx" --dim n=3
"$bin/paddle-show" "$folder/fixed.onnx" | grep -q 'float32\[3\]' || fail "a fixed dim of a copied graph"
expect 2 "has no such dim" "$export_model" "$folder/halve.onnx" -o "$folder/x.onnx" --dim m=3
[[ ! -e "$folder/x.onnx" ]] || fail "a rejected copy writes"

# --- a check that cannot end says so ---
model endless '{x: "float32[n]"}' '[factor]' <<'M'
factor = 1.0
while sum(x) * factor > -1.0e30:
  factor = factor * 1.0
M
expect 0 "the loop has not ended after" "$export_model" "$folder/endless.yaml" -o "$folder/endless.onnx"
finish
