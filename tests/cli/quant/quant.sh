#!/usr/bin/env bash
# paddle-quant: a trained classifier keeps its accuracy in int8, the report agrees with predictions of
# the written models, layers can stay float, ONNX files are quantized, and bad input is rejected.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
quant="$bin/paddle-quant"

ok "$train" configs/quickstart/digits.yaml --output "$folder/run" train.epochs=1 \
  "data.train={kind: digits, size: 6000, seed: 1, range: [0, 5000]}" \
  "data.valid={kind: digits, size: 6000, seed: 1, range: [5000, 6000]}"
ok "$quant" "$folder/run" -o "$folder/int8" --observer mse --json quant.measure=false
cp "$folder/out" "$folder/line.json"
python3 - "$folder" <<'P' || fail "the report"
import json, sys
folder = sys.argv[1]
report = json.load(open(folder + "/int8/report.json"))
assert json.loads(open(folder + "/line.json").read().strip().split("\n")[-1]) == report, "the line differs"
accuracy = report["metrics"]["accuracy"]
assert accuracy["float"] > 0.8, accuracy
assert accuracy["float"] - accuracy["quantized"] <= 0.01, accuracy
assert report["evaluation_samples"] == 1000 and report["calibration_samples"] == 256, report
assert report["bytes"]["quantized"] * 3 < report["bytes"]["float"], report["bytes"]
assert [l["decision"] for l in report["layers"]] == ["int8"] * len(report["layers"]), report["layers"]
assert all(l["sqnr_db"] > 20 and l["place"] for l in report["layers"]), report["layers"]
rows = open(folder + "/int8/layers.csv").read().strip().split("\n")
assert len(rows) == 1 + len(report["layers"]), rows
page = open(folder + "/int8/report.html").read()
assert page.count("<rect") == len(report["layers"]) and "http" not in page, "the page"
P
# Both written forms predict alike, with the accuracy of the report.
ok "$infer" "$folder/int8/model" --data valid --output "$folder/native.jsonl"
python3 - "$folder" <<'P' || fail "predictions of the model folder"
import json, sys
folder = sys.argv[1]
rows = [json.loads(line) for line in open(folder + "/native.jsonl")]
right = sum(r["label"] == r["class"] for r in rows)
expected = json.load(open(folder + "/int8/report.json"))["metrics"]["accuracy"]["quantized"]
assert len(rows) == 1000 and abs(right / 1000 - expected) <= 0.002, (right, expected)
P
ok "$quant" "$folder/run" -o "$folder/partly" --keep-float "conv2d*" quant.measure=false
python3 - "$folder/partly/report.json" <<'P' || fail "--keep-float"
import json, sys
layers = json.load(open(sys.argv[1]))["layers"]
kept = [l for l in layers if l["decision"] == "float32"]
assert kept and all(l["name"].startswith("conv2d") and "keep-float" in l["why"] for l in kept), layers
assert any(l["decision"] == "int8" for l in layers), layers
P

# Each layer is timed: those that lose stay float, or all are quantized because none wins.
run_bounded "$quant" "$folder/run" -o "$folder/measured" --write-anyway --json > /dev/null
python3 - "$folder/measured/report.json" <<'P' || fail "decisions"
import json, sys
report = json.load(open(sys.argv[1]))
layers = report["layers"]
assert all(l["float_us"] > 0 and l["quantized_us"] > 0 for l in layers), layers
for l in layers:
    if l["decision"] == "float32":
        assert l["quantized_us"] > l["float_us"] and "slower" in l["why"], l
P

expect 5 "is quantized already" "$quant" "$folder/int8/model.onnx" -o "$folder/twice" \
  --data "$folder/run/config.yaml:train" quant.measure=false
[[ ! -e "$folder/twice" ]] || fail "a rejected model leaves a folder"

# A model that misses what is accepted goes to best/, unless it is wanted anyway.
expect 1 "is in $folder/rejected/best/model.onnx" "$quant" "$folder/run" -o "$folder/rejected" \
  quant.measure=false quant.accept.speedup=1000 --json
[[ -e "$folder/rejected/best/model.onnx" && ! -e "$folder/rejected/model.onnx" ]] || fail "best/"
ok "$quant" "$folder/run" -o "$folder/rejected" quant.measure=false quant.accept.speedup=1000 \
  --write-anyway --overwrite
[[ -e "$folder/rejected/model.onnx" ]] || fail "--write-anyway"

# Statistics are written once, and read by later calls; a file of another model is not used.
ok "$quant" calibrate "$folder/run" -o "$folder/statistics.safetensors" --samples 64
ok "$quant" "$folder/run" -o "$folder/reused" --statistics "$folder/statistics.safetensors" \
  quant.measure=false
grep -q '"calibration_samples": 64' "$folder/reused/report.json" || fail "statistics are not read"
printf 'not statistics' > "$folder/damaged.safetensors"
expect 5 "" "$quant" "$folder/run" -o "$folder/x" --statistics "$folder/damaged.safetensors"

# A time limit ends what takes long; statistics outlive an interruption.
ok "$quant" "$folder/run" -o "$folder/limited" --time-limit 0.001 --batch 32 "quant.methods=[gptq]" --write-anyway
grep -q "time limit ended calibration after 32 samples" "$folder/error" || fail "--time-limit"
grep -q "layers with their nearest integers" "$folder/error" || fail "--time-limit of methods"
mkdir "$folder/interrupted"
ok "$quant" calibrate "$folder/run" -o "$folder/interrupted/statistics.safetensors" --samples 40
ok "$quant" "$folder/run" -o "$folder/interrupted" --resume quant.measure=false
grep -q '"calibration_samples": 40' "$folder/interrupted/report.json" || fail "--resume"
expect 2 "nothing to resume" "$quant" "$folder/run" -o "$folder/interrupted" --resume
expect 2 "--time-limit" "$quant" "$folder/run" -o "$folder/x" --time-limit soon

# Floats of 16 bits; layers that float16 cannot hold stay float32.
for scheme in float16 bf16; do
  ok "$quant" "$folder/run" -o "$folder/$scheme" --scheme $scheme
done
python3 - "$folder" "$folder/tensors.py" <<'P' || fail "16 bits"
import json, struct, sys
folder = sys.argv[1]
for scheme, least in (("float16", 50), ("bf16", 30)):
    report = json.load(open(f"{folder}/{scheme}/report.json"))
    assert {l["decision"] for l in report["layers"]} == {scheme}, report["layers"]
    assert report["metrics"]["output_sqnr_db"]["quantized"] > least, report["metrics"]
    assert report["bytes"]["quantized"] * 1.8 < report["bytes"]["float"], report["bytes"]
# One weight beyond float16.
path = folder + "/run/model/model.safetensors"
data = bytearray(open(path, "rb").read())
n = struct.unpack("<Q", data[:8])[0]
at = json.loads(data[8:8 + n])["linear.weight"]["data_offsets"][0]
data[8 + n + at:8 + n + at + 4] = struct.pack("<f", 7e4)
open(path, "wb").write(data)
P
ok "$quant" "$folder/run" -o "$folder/large" --scheme float16 --write-anyway
python3 - "$folder/large/report.json" <<'P' || fail "a weight beyond float16"
import json, sys
layers = {l["name"]: l for l in json.load(open(sys.argv[1]))["layers"]}
assert layers["linear"]["decision"] == "float32" and "largest float16" in layers["linear"]["why"], layers
assert layers["conv2d"]["decision"] == "float16", layers
P
expect 3 "is for integers" "$quant" "$folder/run" -o "$folder/x" --scheme bf16 "quant.methods=[gptq]"
ok "$train" configs/quickstart/digits.yaml --output "$folder/run" --overwrite train.epochs=1 \
  "data.train={kind: digits, size: 6000, seed: 1, range: [0, 5000]}" \
  "data.valid={kind: digits, size: 6000, seed: 1, range: [5000, 6000]}"

# The other schemes, methods, and formats of single layers.
for scheme in int8_dynamic int8_weights int4_weights; do
  ok "$quant" "$folder/run" -o "$folder/$scheme" --scheme $scheme quant.measure=false --json
  python3 - "$folder/$scheme/report.json" $scheme <<'P' || fail "$scheme"
import json, sys
report, scheme = json.load(open(sys.argv[1])), sys.argv[2]
assert all(l["decision"] == scheme for l in report["layers"]), report["layers"]
accuracy = report["metrics"]["accuracy"]
assert accuracy["float"] - accuracy["quantized"] <= 0.02, accuracy
assert report["bytes"]["quantized"] * (6 if "int4" in scheme else 3) < report["bytes"]["float"]
P
done
cat > "$folder/quant.yaml" <<'Y'
quant:
  scheme: int8
  measure: false
  methods: [equalize, adaround, bias_correction]
  layers:
    - {op: linear, weights: {dtype: int4, group: 32}}
    - {match: "linear_2", keep: float32}
Y
ok "$quant" "$folder/run" -c "$folder/quant.yaml" -o "$folder/mixed"
python3 - "$folder/mixed/report.json" <<'P' || fail "quant.yaml"
import json, sys
report = json.load(open(sys.argv[1]))
decisions = {l["name"]: l["decision"] for l in report["layers"]}
assert decisions == {"conv2d": "int8", "conv2d_2": "int8", "linear": "int4", "linear_2": "float32"}, decisions
assert report["methods"] == ["equalize", "adaround", "bias_correction"], report["methods"]
P
ok "$quant" sensitivity "$folder/run" --json
python3 -c 'import json,sys; l = json.loads(open(sys.argv[1]).read())["layers"]; assert len(l) == 4 and all(x["output_sqnr_db"] > 15 for x in l), l' \
  "$folder/out" || fail "sensitivity"
ok "$quant" compare "$folder/run" "$folder/int8/model" --data valid --json
python3 - "$folder" <<'P' || fail "compare"
import json, sys
found = json.loads(open(sys.argv[1] + "/out").read())
report = json.load(open(sys.argv[1] + "/int8/report.json"))
assert abs(found["accuracy"]["second"] - report["metrics"]["accuracy"]["quantized"]) < 0.002, found
P
expect 3 "did you mean 'equalize'?" "$quant" "$folder/run" -o "$folder/x" quant.methods=[equalise]
expect 3 "smooth is for quantized activations" "$quant" "$folder/run" -o "$folder/x" \
  --scheme int8_weights quant.methods=[smooth]
expect 3 "no layer matches" "$quant" "$folder/run" -o "$folder/x" "quant.layers=[{match: zzz, keep: float32}]"
expect 3 "unknown key" "$quant" "$folder/run" -o "$folder/x" quant.shceme=int8

# GGUF files: blocks that paddle-infer reads, with everything else as it was.
ok "$quant" tests/llm/data/llama.gguf --scheme q8_0 -o "$folder/q8_0.gguf" --json --keep-float "output*"
cp "$folder/out" "$folder/gguf.json"
python3 - "$folder" <<'P' || fail "the report of a GGUF file"
import json, sys
report = json.loads(open(sys.argv[1] + "/gguf.json").read())
kinds = {t["name"]: (t["before"], t["after"]) for t in report["tensors"]}
assert kinds["blk.0.attn_q.weight"] == ("F32", "Q8_0"), kinds
assert kinds["blk.0.attn_norm.weight"][1] == "F32", kinds
assert all(t["sqnr_db"] > 40 for t in report["tensors"] if t["before"] != t["after"]), report
P
for type in q4_k q5_k q6_k; do  # rows of less than 256 values take blocks of 32
  ok "$quant" tests/llm/data/llama.gguf --scheme $type -o "$folder/$type.gguf" --json
  ok "$infer" "$folder/$type.gguf" --input tests/llm/data/llama/golden.npz --output "$folder/k.npz" --quiet
done
for scales in plain searched; do
  ok "$quant" tests/llm/data/llama.gguf --scheme q4_0 --scales $scales -o "$folder/$scales.gguf" --json
  cp "$folder/out" "$folder/$scales.json"
done
python3 - "$folder" <<'P' || fail "searched scales"
import json, sys
plain, searched = ({t["name"]: t.get("sqnr_db", 0) for t in json.load(open(f"{sys.argv[1]}/{s}.json"))["tensors"]}
                   for s in ("plain", "searched"))
assert all(searched[n] >= plain[n] for n in plain) and sum(searched.values()) > sum(plain.values()) + 1, (plain, searched)
P
expect 2 "in {plain,searched}" "$quant" tests/llm/data/llama.gguf --scheme q4_0 --scales best -o "$folder/x.gguf"
ok "$infer" "$folder/q8_0.gguf" --input tests/llm/data/llama/golden.npz --output "$folder/gguf.npz" --quiet
# Packing while loading gives the logits of the packed file.
ok "$quant" tests/llm/data/llama.gguf --scheme q8_0 -o "$folder/packed.gguf"
for each in "$folder/packed.gguf" "tests/llm/data/llama.gguf --weights-as int8"; do
  ok "$infer" $each --input tests/llm/data/llama/golden.npz --output "$folder/packed.npz" --quiet \
    --activations int16
  python3 -c "import sys, zipfile; print(zipfile.ZipFile(sys.argv[1]).getinfo('logits.npy').CRC)" "$folder/packed.npz"
done > "$folder/checksums"
[[ "$(wc -l < "$folder/checksums")" == 2 && "$(uniq "$folder/checksums" | wc -l)" == 1 ]] || fail "--weights-as"
expect 2 "already exists" "$quant" tests/llm/data/llama.gguf --scheme q8_0 -o "$folder/q8_0.gguf"
expect 3 "no tensor matches" "$quant" tests/llm/data/llama.gguf --scheme q8_0 -o "$folder/x.gguf" --keep-float "zzz*"
expect 2 "needs a Hugging Face folder or a GGUF file" "$quant" "$folder/run" --scheme q4_0 -o "$folder/x.gguf"
expect 2 "is a Hugging Face folder, which paddle quant does not take" "$quant" tests/llm/data/llama --scheme int8
expect 2 "is a Hugging Face folder, which paddle quant sensitivity" "$quant" sensitivity tests/llm/data/llama
expect 2 "is a Hugging Face folder, which prune" "$quant" prune tests/llm/data/llama -o "$folder/x"
expect 2 "is a GGUF file, which compare" "$quant" compare "$folder/run" tests/llm/data/llama.gguf --data valid
expect 2 "'paddle quant tests/llm/data/llama.gguf --scheme TYPE'" "$quant" tests/llm/data/llama.gguf

# An ONNX file with arrays, and a model file of random weights with layers in loops and sequences.
ok "$bin/paddle-export" models/resnet.yaml "params.depth=[1,1,1,1]" params.width=8 params.classes=10 \
  -o "$folder/resnet.onnx"
python3 - "$folder" <<'P'
import random, struct, sys, zipfile
random.seed(3)
shape = (40, 3, 32, 32)
header = str({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
def save(name, values):
    data = struct.pack(f"<{len(values)}f", *values)
    with zipfile.ZipFile(f"{sys.argv[1]}/{name}.npz", "w") as z:
        z.writestr("image.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)
values = [random.gauss(0, 1) for _ in range(40 * 3 * 32 * 32)]
save("images", values)
values[1234] = float("nan")
save("nan", values)
P
ok "$quant" "$folder/resnet.onnx" --data "$folder/images.npz" -o "$folder/resnet_int8.onnx" \
  --target onnxruntime
grep -q "output_sqnr_db" "$folder/resnet_int8.onnx.report.json" || fail "no report next to the file"
ok "$quant" models/lenet.yaml --data configs/quickstart/digits.yaml:valid -o "$folder/lenet.onnx" --dry-run

expect 2 "already exists" "$quant" "$folder/run" -o "$folder/int8"
expect 2 "no model is given" "$quant"
expect 2 "did you mean 'min_max'?" "$quant" "$folder/run" -o "$folder/x" --observer min_mx
expect 2 "give --data" "$quant" models/lenet.yaml -o "$folder/x"
expect 3 "no layer matches 'conv9*'" "$quant" "$folder/run" -o "$folder/x" --keep-float "conv9*"
expect 3 "expected a share" "$quant" "$folder/run" -o "$folder/x" --max-drop lots
expect 2 "did you mean" "$quant" "$folder/run" -o "$folder/x" --scheme int3
expect 4 "NaN or infinite" "$quant" "$folder/resnet.onnx" --data "$folder/nan.npz" -o "$folder/x"
expect 2 "" "$quant" "$folder/run" --data "$folder/nowhere.npz" -o "$folder/x"
[[ ! -e "$folder/x/model.onnx" ]] || fail "a rejected call left a model"
finish
