#!/usr/bin/env bash
# paddle-quant: transposed convolutions become convolutions of integers, from model files and from
# ONNX files, with the same numbers for any number of threads and samples.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
quant="$bin/paddle-quant"

cat > "$folder/decoder.yaml" <<'Y'
name: decoder
inputs: {image: "float32[batch, 4, 6, 5]"}
model: |
  x = relu(conv2d(image, 16, 3, padding=1))
  x = relu(conv2d_transpose(x, 16, 4, stride=2, padding=1))
  x = relu(conv2d_transpose(x, 8, 3, stride=2, padding=1, output_padding=1, groups=2))
  x = conv2d_transpose(x, 8, 2, stride=2, groups=8)
  y = conv2d_transpose(x, 3, 3, padding=1)
outputs: [y]
Y
python3 - "$folder/images.npz" <<'P'
import random, struct, sys, zipfile
random.seed(2)
shape = (40, 4, 6, 5)
count = 40 * 4 * 6 * 5
header = str({"descr": "<f4", "fortran_order": False, "shape": shape})
header += " " * (63 - (len(header) + 10) % 64) + "\n"
body = struct.pack(f"<{count}f", *(random.gauss(0, 1) for _ in range(count)))
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("image.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body)
P
ok "$bin/paddle-export" "$folder/decoder.yaml" --seed 3 -o "$folder/decoder.onnx" --no-check

# Layers of a report with their decisions, and the noise of the whole.
check() {
  python3 - "$folder/$1.onnx.report.json" "$2" <<'P' || fail "$1"
import json, sys
report = json.load(open(sys.argv[1]))
layers = {l["name"]: l for l in report["layers"]}
kinds = [(l["op"], l["decision"]) for l in report["layers"]]
noise = report["metrics"]["output_sqnr_db"]["quantized"]
exec(sys.argv[2])
P
}
common=(--data "$folder/images.npz" --write-anyway)
for from in "decoder.yaml --seed 3" decoder.onnx; do
  name="${from%% *}" && name="int8_${name#*.}"
  # shellcheck disable=SC2086
  ok "$quant" "$folder/"$from "${common[@]}" quant.measure=false -o "$folder/$name.onnx"
  check "$name" '
assert kinds == [("conv2d", "int8")] + 4 * [("conv2d_transpose", "int8")], kinds
assert noise > 30, noise'
done
rm -rf "$folder/ir"
ok "$infer" "$folder/int8_onnx.onnx" --input "$folder/images.npz" --benchmark 1 --dump-ir "$folder/ir"
# (Depthwise kernels have no integer form on processors without VNNI.)
python3 - "$folder/ir" <<'P' || fail "transposed convolutions are floats"
import glob, sys
text = open(sorted(glob.glob(sys.argv[1] + "/*lower_qdq*"))[0]).read()
assert text.count("quantized_conv(") >= 4 and text.count("conv2d_input_grad(") <= 1, text
P

# Without quant.measure=false, times decide; rules name these layers by their operation.
ok "$quant" "$folder/decoder.yaml" --seed 3 "${common[@]}" -o "$folder/measured.onnx"
check measured '
for l in report["layers"]:
    assert l["float_us"] > 0 and l["quantized_us"] > 0, l
    assert (l["decision"] == "int8") == (l["quantized_us"] <= l["float_us"]), l'
ok "$quant" "$folder/decoder.yaml" --seed 3 "${common[@]}" quant.measure=false \
  "quant.layers=[{op: conv2d_transpose, keep: float32}]" -o "$folder/kept.onnx"
check kept 'assert kinds == [("conv2d", "int8")] + 4 * [("conv2d_transpose", "float32")], kinds'
for scheme in int8_dynamic int8_weights int4_weights; do
  ok "$quant" "$folder/decoder.yaml" --seed 3 "${common[@]}" --scheme $scheme quant.measure=false \
    -o "$folder/$scheme.onnx"
  check $scheme "assert {d for _, d in kinds} == {'$scheme'} and noise > 12, (kinds, noise)"
done
ok "$quant" "$folder/decoder.yaml" --seed 3 "${common[@]}" quant.measure=false \
  "quant.methods=[equalize, gptq, bias_correction]" -o "$folder/methods.onnx"
check methods 'assert noise > 30, noise'

# Results depend neither on threads nor on the other samples of a batch.
for words in "1 40" "2 40" "2 7"; do
  read -r threads batch <<< "$words"
  ok "$infer" "$folder/int8_yaml.onnx" --input "$folder/images.npz" --batch "$batch" \
    --output "$folder/out.$threads.$batch.npz" --quiet --threads "$threads"
done
python3 - "$folder" <<'P' || fail "results depend on threads or batches"
import sys, zipfile
bits = {zipfile.ZipFile(f"{sys.argv[1]}/out.{words}.npz").getinfo("y.npy").CRC
        for words in ("1.40", "2.40", "2.7")}
assert len(bits) == 1, bits
P
finish
