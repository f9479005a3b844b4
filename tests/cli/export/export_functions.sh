#!/usr/bin/env bash
# paddle-export --function …: several functions of a model, one file each, with one data file for the
# weights that they share.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
export_model="$bin/paddle-export"
ok() { [[ "$(run_bounded "$@")" == 0 ]] || { cat "$folder/out"; fail "$*"; }; }

cat > "$folder/model.yaml" <<'Y'
params: {vocab_size: 300, width: 64}
inputs: {tokens: "int64[batch, length]"}
blocks:
  body(x): |
    return layer_norm(x + linear(gelu(linear(x, 4 * width, name="up")), width, name="down"), name="norm")
model: |
  x = body(embedding(tokens, vocab_size, width, name="words"))
  logits = matmul(x, get("words.weight"), transpose_y=true)
outputs: [logits]
functions:
  encode:
    inputs: {tokens: "int64[batch, length]"}
    model: |
      hidden = body(embedding(tokens, vocab_size, width, name="words"))
    outputs: [hidden]
  prefill:
    inputs: {tokens: "int64[batch, length]"}
    model: |
      x = body(embedding(tokens, vocab_size, width, name="words"))
      logits = matmul(x[:, -1], get("words.weight"), transpose_y=true)
    outputs: [logits]
  decode:
    inputs: {token: "int64[batch]", hidden: "float32[batch, 64]"}
    model: |
      x = embedding(token, vocab_size, width, name="words") + linear(hidden, width, name="carry")
      logits = matmul(x, get("words.weight"), transpose_y=true)
    outputs: [logits]
Y
ok "$export_model" "$folder/model.yaml" -o "$folder/m.onnx" --function encode --function prefill --function decode
for name in encode prefill decode; do
  [[ -s "$folder/m.$name.onnx" && -s "$folder/m.$name.onnx.report.json" ]] || fail "$name has no file"
  (($(stat -c %s "$folder/m.$name.onnx") < 16384)) || fail "$name has weights of its own"
done
(($(grep -c "agrees with the model" "$folder/out") == 9)) || fail "not each function is checked at three bindings"
[[ ! -e "$folder/m.onnx" ]] || fail "there is a file without the name of a function"
# words, up, down, carry: 4 * (300 * 64 + 2 * 64 * 256 + 64 * 64) bytes, each once.
size="$(stat -c %s "$folder/m.onnx.data")"
((size >= 224256 && size < 224256 + 8 * 4096)) || fail "the data file has $size bytes"
# The files stand at their final names: another run of them gives the same.
ok "$bin/paddle-show" "$folder/m.decode.onnx"
ok "$export_model" "$folder/m.decode.onnx" -o "$folder/again.onnx"
cp "$folder/m.onnx.data" "$folder/before"
ok "$export_model" "$folder/model.yaml" -o "$folder/m.onnx" --function encode --function prefill --function decode --overwrite --no-check
cmp "$folder/before" "$folder/m.onnx.data" || fail "the same model gives other bytes"

# One function, and what is rejected.
ok "$export_model" "$folder/model.yaml" -o "$folder/one.onnx" --function encode
[[ -s "$folder/one.onnx" && ! -e "$folder/one.onnx.data" ]] || fail "one function is not one file"
expect 2 "has no function 'decod' (did you mean 'decode'?)" "$export_model" "$folder/model.yaml" -o "$folder/x.onnx" \
  --function encode --function decod
expect 2 "is given twice" "$export_model" "$folder/model.yaml" -o "$folder/x.onnx" --function encode --function encode
expect 2 "m.prefill.onnx: already exists" "$export_model" "$folder/model.yaml" -o "$folder/m.onnx" --function prefill --function decode
rm "$folder"/m.*.onnx
expect 2 "m.onnx.data: already exists" "$export_model" "$folder/model.yaml" -o "$folder/m.onnx" --function prefill --function decode
[[ -z "$(ls "$folder" | grep -E "unchecked|tmp")" ]] || fail "a rejected export left files"

# A full disk leaves what was there.
cp "$folder/one.onnx" "$folder/old.onnx"
(ulimit -f 100; exec "$export_model" "$folder/model.yaml" -o "$folder/one.onnx" --function encode --overwrite --no-check) \
  > "$folder/out" 2> "$folder/error"
[[ $? == 6 ]] || fail "a full disk does not give 6"
cmp "$folder/old.onnx" "$folder/one.onnx" || fail "a full disk damages the old file"
finish
