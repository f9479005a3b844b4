#!/usr/bin/env bash
# paddle-quant: recurrent layers, attention and products of two activations, layers in control flow,
# scales of single rows, tables, and weights of 7 bits.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
quant="$bin/paddle-quant"

cat > "$folder/recurrent.yaml" <<'Y'
name: recurrent
inputs: {tokens: "int64[batch, 12]"}
model: |
  x = embedding(tokens, 30, 32)
  y, (h, c) = lstm(x, 48, direction="bidirect")
  z, last = gru(y, 32)
  logits = linear(z[:, -1], 6)
outputs: [logits]
Y
cat > "$folder/attention.yaml" <<'Y'
name: attention
inputs: {tokens: "int64[batch, 12]"}
model: |
  x = embedding(tokens, 30, 32, weight_init=normal(0, 1))
  qkv = reshape(linear(x, 96), [batch, 12, 3, 4, 8])
  y = scaled_dot_product_attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], is_causal=true)
  y = linear(reshape(y, [batch, 12, 32]), 32)
  logits = sum(matmul(y, transpose(x, [0, 2, 1])), axis=1)
outputs: [logits]
Y
cat > "$folder/control.yaml" <<'Y'
name: control
inputs: {tokens: "int64[batch, 12]"}
model: |
  x = sum(embedding(tokens, 30, 32, weight_init=normal(0, 1)), axis=1)
  w = param("w", [32, 32], init=normal(0, 0.15))
  steps = 0 * max(tokens) + 3
  i = 0 * steps
  while i < steps:
    x = tanh(matmul(x, w))
    i = i + 1
  logits = linear(x, 6)
outputs: [logits]
Y
python3 - "$folder" <<'P'
import random, struct, sys, zipfile
random.seed(4)
shape = (64, 12)
header = str({"descr": "<i8", "fortran_order": False, "shape": shape}).encode()
header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
values = [random.randrange(30) for _ in range(shape[0] * shape[1])]
with zipfile.ZipFile(f"{sys.argv[1]}/tokens.npz", "w") as z:
    z.writestr("tokens.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
               + struct.pack(f"<{len(values)}q", *values))
P
for model in recurrent attention control; do
  ok "$bin/paddle-export" "$folder/$model.yaml" --seed 3 -o "$folder/$model.onnx" --no-check
done
common=(--data "$folder/tokens.npz" --target onnxruntime --write-anyway)

# Layers of a report with their decisions, and the noise of the whole.
check() {
  python3 - "$folder/$1.onnx.report.json" "$2" <<'P' || fail "$1"
import json, sys
report = json.load(open(sys.argv[1]))
layers = {l["name"]: l for l in report["layers"]}
noise = report["metrics"]["output_sqnr_db"]["quantized"]
exec(sys.argv[2])
P
}
ok "$quant" "$folder/recurrent.yaml" --seed 3 "${common[@]}" -o "$folder/recurrent_int8.onnx"
check recurrent_int8 '
kinds = [(l["op"], l["decision"]) for l in report["layers"]]
assert kinds.count(("recurrent_scan", "int8")) == 3 and kinds.count(("matmul", "int8")) == 3, kinds
assert noise > 30, noise'
# A file of LSTM and GRU operators is quantized alike, and so is what was quantized in it.
ok "$quant" "$folder/recurrent.onnx" "${common[@]}" -o "$folder/imported.onnx"
check imported '
kinds = [(l["op"], l["decision"]) for l in report["layers"]]
assert kinds.count(("recurrent_scan", "int8")) == 3 and kinds.count(("matmul", "int8")) == 4, kinds
assert noise > 30, noise'
ok "$quant" "$folder/recurrent.yaml" --seed 3 "${common[@]}" --scheme int4_weights \
  -o "$folder/recurrent_int4.onnx"
check recurrent_int4 '
assert {l["decision"] for l in report["layers"]} == {"int4_weights"}, layers
assert noise > 12, noise'
"$bin/paddle-infer" "$folder/imported.onnx" --input "$folder/tokens.npz" --benchmark 1 \
  --dump-ir "$folder/ir" > /dev/null || fail "running recurrent layers"
grep -q "quantized_linear(" "$folder"/ir/*lower_qdq* || fail "inputs of recurrent layers are floats"

ok "$quant" "$folder/attention.yaml" --seed 3 "${common[@]}" -o "$folder/attention_int8.onnx"
check attention_int8 '
kinds = {l["op"]: l for l in report["layers"] if l["decision"] == "int8"}
assert "input_range_3" in kinds["attention"] and "input_range_2" in kinds["matmul"], kinds
assert noise > 20, noise'
ok "$quant" "$folder/attention.yaml" --seed 3 "${common[@]}" quant.products=false \
  -o "$folder/plain.onnx"
check plain 'assert {l["op"] for l in report["layers"]} == {"embedding", "linear"}, layers'
ok "$quant" "$folder/attention.yaml" --seed 3 "${common[@]}" --scheme int8_dynamic \
  quant.activations.when=token -o "$folder/token.onnx"
check token '
assert {l["decision"] for l in report["layers"] if l["op"] == "linear"} == {"int8_token"}, layers
assert noise > 35, noise'
expect 3 "keeps them float" "$quant" "$folder/attention.yaml" "${common[@]}" --scheme int8_weights \
  quant.activations.when=token -o "$folder/x.onnx"

ok "$quant" "$folder/control.yaml" --seed 3 "${common[@]}" -o "$folder/control_int8.onnx"
check control_int8 '
assert layers["w"]["decision"] == "int8" and layers["w"]["input_range"][0] < -0.1, layers
assert noise > 20, noise'
ok "$quant" "$folder/control.yaml" --seed 3 "${common[@]}" --keep-float w -o "$folder/kept.onnx"
check kept 'assert layers["w"]["decision"] == "float32", layers'

# Results depend neither on threads nor on the other samples of a batch.
for words in "1 64" "2 64" "2 5"; do
  read -r threads batch <<< "$words"
  for model in recurrent_int8 attention_int8 control_int8; do
    ok "$infer" "$folder/$model.onnx" --input "$folder/tokens.npz" --batch "$batch" \
      --output "$folder/$model.$threads.$batch.npz" --quiet --threads "$threads"
  done
done
python3 - "$folder" <<'P' || fail "results depend on threads or batches"
import sys, zipfile
folder = sys.argv[1]
for model in ("recurrent_int8", "attention_int8", "control_int8"):
    bits = {zipfile.ZipFile(f"{folder}/{model}.{words}.npz").getinfo("logits.npy").CRC
            for words in ("1.64", "2.64", "2.5")}
    assert len(bits) == 1, model
P

# Weights of 7 bits fit processors that add products of bytes in 16 bits.
ok "$quant" "$folder/attention.yaml" --seed 3 --data "$folder/tokens.npz" --target onnxruntime-avx2 \
  -o "$folder/seven.onnx"
check seven 'assert noise > 20, noise'
expect 3 "did you mean" "$quant" "$folder/attention.yaml" --data "$folder/tokens.npz" \
  --target onnxruntime-avx -o "$folder/x.onnx"
# A search returns layers to floats until the terms hold, keeps the best model, and continues.
search=(quant.measure=false quant.accept.sqnr_db=30 "quant.search={budget: {time: 10m, trials: 20}}")
four=("quant.weights={dtype: int4, per: channel}" "${search[@]}")
ok "$quant" "$folder/attention.yaml" --seed 3 "${common[@]}" "${four[@]}" -o "$folder/searched" --json
python3 - "$folder/searched" <<'P' || fail "the search"
import json, os, sys
folder = sys.argv[1]
report = json.load(open(folder + "/report.json"))
progress = json.load(open(folder + "/progress.json"))
kept = [l for l in report["layers"] if l["why"].startswith("search:")]
assert report["accepted"] and report["metrics"]["output_sqnr_db"]["quantized"] >= 30, report
assert 0 < len(kept) < len(progress["order"]), kept
assert {l["name"] for l in kept} == {l["name"] for l in progress["order"][:len(kept)]}, kept
assert report["trials"] == len(progress["trials"]) >= 2, progress
assert os.path.exists(folder + "/model.onnx") and not os.path.exists(folder + "/best"), folder
P
# Interrupted after a trial: what is recorded is not tried again, and the result is the same.
mkdir "$folder/again"
python3 - "$folder" <<'P'
import json, sys
progress = json.load(open(sys.argv[1] + "/searched/progress.json"))
progress["trials"] = progress["trials"][:1]
json.dump(progress, open(sys.argv[1] + "/again/progress.json", "w"))
P
cp "$folder/searched/statistics.safetensors" "$folder/again/"
ok "$quant" "$folder/attention.yaml" --seed 3 "${common[@]}" "${four[@]}" -o "$folder/again" --resume
cmp -s "$folder/searched/model.onnx" "$folder/again/model.onnx" || fail "a resumed search differs"
expect 3 "search.budget.time" "$quant" "$folder/attention.yaml" "${common[@]}" \
  "quant.search={budget: {time: soon}}" quant.accept.sqnr_db=400 -o "$folder/x"
expect 3 "without 'accuracy'" "$quant" "$folder/attention.yaml" "${common[@]}" \
  quant.accept.confidence=95 -o "$folder/x"

# For ONNX Runtime the result of a convolution that goes into a sum becomes integers too.
cat > "$folder/residual.yaml" <<'Y'
name: residual
inputs: {image: "float32[batch, 4, 12, 12]"}
model: |
  x = relu(conv2d(image, 8, 3, padding=1))
  y = relu(conv2d(x, 8, 3, padding=1))
  x = relu(x + conv2d(y, 8, 3, padding=1))
  logits = linear(mean(relu(conv2d(x, 8, 3)), [2, 3]), 5)
outputs: [logits]
Y
python3 - "$folder/images.npz" <<'P'
import random, struct, sys, zipfile
random.seed(2)
header = str({"descr": "<f4", "fortran_order": False, "shape": (48, 4, 12, 12)})
header += " " * (63 - (len(header) + 10) % 64) + "\n"
body = struct.pack("<27648f", *(random.gauss(0, 1) for _ in range(27648)))
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("image.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body)
P
residual=("$quant" "$folder/residual.yaml" --seed 5 --data "$folder/images.npz" --samples 48 --write-anyway)
ok "${residual[@]}" -o "$folder/sums_here" quant.measure=false
ok "${residual[@]}" -o "$folder/sums_there" --target onnxruntime
python3 - "$folder" <<'P' || fail "sums of integers"
import json, sys
folder = sys.argv[1]
def quantizers(name):
    data = open(f"{folder}/{name}/model.onnx", "rb").read()
    return data.count(b"QuantizeLinear")
here, there = quantizers("sums_here"), quantizers("sums_there")
assert there == here + 1, (here, there)
for name in ("sums_here", "sums_there"):
    noise = json.load(open(f"{folder}/{name}/report.json"))["metrics"]["output_sqnr_db"]["quantized"]
    assert noise > 30, (name, noise)
P
# Statistics have the results of convolutions, so another call needs no data pass.
ok "${residual[@]}" -o "$folder/sums_again" --target onnxruntime \
  --statistics "$folder/sums_there/statistics.safetensors"
cmp -s "$folder/sums_there/model.onnx" "$folder/sums_again/model.onnx" || fail "statistics of results"
finish
