#!/usr/bin/env bash
# Training with quantization: evaluation, the saved model, its conversion and its ONNX file give the
# same classes; resuming and eager execution repeat the losses; formats of 4 bits that are trained
# lose less than rounded ones; a teacher in floats; bad sections are rejected.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
quant="$bin/paddle-quant"
losses() { grep '"kind": *"train"' "$1/metrics.jsonl" | sed -E 's/.*"loss": *([^,]*),.*/\1/'; }

data=("data.train={kind: digits, size: 4000, seed: 1, range: [0, 3000]}"
      "data.valid={kind: digits, size: 4000, seed: 1, range: [3000, 4000]}" train.log_every=10)
ok "$train" configs/quickstart/digits.yaml --output "$folder/float" train.epochs=2 "${data[@]}"

# From trained weights, with ranges that are observed first.
aware=(configs/quickstart/digits.yaml "${data[@]}" "init={weights: $folder/float/model/model.safetensors}"
       "quant={train: {observe: 8}}" optimizer.lr=2e-4 schedule=constant train.steps=60)
ok "$train" "${aware[@]}" --output "$folder/aware" train.checkpoint_every=30
ok "$quant" "$folder/aware" -o "$folder/int8" --json
python3 - "$folder" <<'P' || fail "the report"
import json, sys
folder = sys.argv[1]
report = json.load(open(folder + "/int8/report.json"))
accuracy = report["metrics"]["accuracy"]
assert [l["decision"] for l in report["layers"]] == ["int8"] * 4, report["layers"]
assert accuracy["float"] - accuracy["quantized"] <= 0.005, accuracy
assert report["bytes"]["quantized"] * 3 < report["bytes"]["float"], report["bytes"]
lines = [json.loads(l) for l in open(folder + "/aware/metrics.jsonl")]
valid = [l for l in lines if l["kind"] == "valid"][-1]
assert abs(valid["accuracy"] - accuracy["quantized"]) < 1e-9, (valid, accuracy)
P
# The saved model, the newest checkpoint, the integers and the ONNX file give the same bits.
for each in aware/model aware/checkpoints int8/model int8/model.onnx; do
  ok "$infer" "$folder/$each" --data "$folder/aware/config.yaml:valid" \
    --output "$folder/$(tr / _ <<< "$each").npz"
done
python3 - "$folder" <<'P' || fail "predictions differ"
import sys, zipfile
folder = sys.argv[1]
def arrays(name):
    with zipfile.ZipFile(f"{folder}/{name}.npz") as z:
        return {n: z.read(n) for n in z.namelist() if n.startswith("logits")}
first = arrays("aware_model")
assert first, "no outputs"
for name in ("aware_checkpoints", "int8_model", "int8_model.onnx"):
    assert arrays(name) == first, name
P

# Eager and resumed runs have the losses of the compiled one.
ok "$train" "${aware[@]}" --output "$folder/eager" --eager compile.exact=true train.steps=20
ok "$train" "${aware[@]}" --output "$folder/exact" compile.exact=true train.steps=20
[[ "$(losses "$folder/eager")" == "$(losses "$folder/exact")" ]] || fail "eager differs"
ok "$train" "${aware[@]}" --output "$folder/resumed" train.checkpoint_every=30 train.steps=30
ok "$train" --resume "$folder/resumed" train.steps=60
[[ "$(losses "$folder/resumed" | tail -1)" == "$(losses "$folder/aware" | tail -1)" ]] ||
  fail "a resumed run differs"

# Four bits with one scale a channel: training recovers most of what rounding loses.
four=(quant.scheme=int4_weights "quant.weights={dtype: int4, per: channel, scale: range}")
ok "$quant" "$folder/float" -o "$folder/rounded" "${four[@]}" --json --write-anyway
ok "$train" "${aware[@]}" "quant={scheme: int4_weights, weights: {dtype: int4, per: channel, scale: range}, train: {}}" \
  train.steps=140 --output "$folder/four"
ok "$quant" "$folder/four" -o "$folder/four_bits" --json --write-anyway
# Moving averages of ranges, in bfloat16, with a layer that stays float.
ok "$train" "${aware[@]}" precision=bfloat16 \
  "quant={train: {observe: 4, learned_scales: false}, layers: [{match: 'linear*', keep: float32}]}" \
  --output "$folder/partly" train.steps=20
ok "$quant" "$folder/partly" -o "$folder/partly8" --json --write-anyway
python3 - "$folder" <<'P' || fail "other formats"
import json, sys
folder = sys.argv[1]
report = lambda name: json.load(open(f"{folder}/{name}/report.json"))
rounded = report("rounded")["metrics"]["accuracy"]
trained = report("four_bits")["metrics"]["accuracy"]
assert trained["quantized"] > rounded["quantized"], (rounded, trained)
layers = report("partly8")["layers"]
assert {l["decision"] for l in layers if l["name"].startswith("conv")} == {"int8"}, layers
assert {l["decision"] for l in layers if l["name"].startswith("linear")} == {"float32"}, layers
P

# Batch norms are folded into convolutions of integers, negative factors too, and freeze after some
# steps.
cat > "$folder/normed.yaml" <<'Y'
name: normed
inputs: {image: "float32[batch, 1, 28, 28]"}
model:
  - conv2d: {out_channels: 8, kernel_size: 5, stride: 2, bias: false}
  - batch_norm
  - relu
  - conv2d: {out_channels: 16, kernel_size: 3, stride: 2}
  - batch_norm
  - relu
  - flatten
  - linear: 10
outputs: [logits]
Y
normed=(configs/quickstart/digits.yaml "${data[@]}" "model=$folder/normed.yaml")
ok "$train" "${normed[@]}" --output "$folder/normed" train.epochs=1
ok "$train" "${normed[@]}" --output "$folder/normed_aware" train.steps=40 schedule=constant \
  optimizer.lr=2e-4 "init={weights: $folder/normed/model/model.safetensors}" \
  "quant={train: {observe: 8, freeze_norms: 20}}" train.checkpoint_every=20
ok "$quant" "$folder/normed_aware" -o "$folder/normed_int8" --write-anyway
for each in normed_aware/model normed_aware/checkpoints normed_int8/model normed_int8/model.onnx; do
  ok "$infer" "$folder/$each" --data "$folder/normed_aware/config.yaml:valid" \
    --output "$folder/$(tr / _ <<< "$each").npz"
done
python3 - "$folder" <<'P' || fail "folded norms"
import json, struct, sys, zipfile
folder = sys.argv[1]
def arrays(name):
    with zipfile.ZipFile(f"{folder}/{name}.npz") as z:
        return {n: z.read(n) for n in z.namelist() if n.startswith("logits")}
first = arrays("normed_aware_model")
assert first, "no outputs"
for name in ("normed_aware_checkpoints", "normed_int8_model", "normed_int8_model.onnx"):
    assert arrays(name) == first, name
report = json.load(open(folder + "/normed_int8/report.json"))
accuracy = report["metrics"]["accuracy"]
assert accuracy["float"] - accuracy["quantized"] <= 0.01, accuracy
assert [l["decision"] for l in report["layers"]] == ["int8"] * 3, report["layers"]
lines = [json.loads(l) for l in open(folder + "/normed_aware/metrics.jsonl")]
valid = [l for l in lines if l["kind"] == "valid"][-1]
assert abs(valid["accuracy"] - accuracy["quantized"]) < 1e-9, (valid, accuracy)
# From step 20 on, running statistics stay.
def statistics(step):
    data = open(f"{folder}/normed_aware/checkpoints/{step}/model.safetensors", "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]
            for k, v in json.loads(data[8:8 + n]).items() if "running_" in k}
assert statistics(20) == statistics(40) and len(statistics(20)) == 4, statistics(20).keys()
P
"$bin/paddle-infer" "$folder/normed_int8/model.onnx" --benchmark 1 --batch 4 --dump-ir "$folder/ir" \
  > /dev/null || fail "running folded norms"
! grep -q "batch_norm" "$folder"/ir/*trace* || fail "norms are left"

expect 3 "no layer matches 'lineer*'" "$train" "${aware[@]}" \
  "quant={train: {}, layers: [{match: 'lineer*', keep: float32}]}" --output "$folder/x"
expect 3 "observe" "$train" "${aware[@]}" "quant={train: {observe: 0}}" --output "$folder/x"
expect 3 "float64" "$train" "${aware[@]}" precision=float64 --output "$folder/x"
expect 3 "zero points" "$train" "${aware[@]}" "quant={train: {}, weights: {symmetric: false}}" \
  --output "$folder/x"
expect 2 "was trained with quantization" "$quant" sensitivity "$folder/aware"

# A teacher in floats: the loss is a sum of that of the labels and of the distance to its outputs.
cat > "$folder/plain.yaml" <<'Y'
name: plain
inputs: {image: "float32[batch, 1, 28, 28]"}
model:
  - conv2d: {out_channels: 8, kernel_size: 5, stride: 2}
  - relu
  - flatten
  - linear: 10
outputs: [logits]
Y
plain=(configs/quickstart/digits.yaml "${data[@]}" "model=$folder/plain.yaml")
ok "$train" "${plain[@]}" --output "$folder/plain" train.steps=60
taught() { echo "quant={train: {observe: 8, teacher: {model: $folder/plain, $1}}}"; }
steps=(train.steps=40 train.log_every=1)
aware=("${plain[@]}" "init={weights: $folder/plain/model/model.safetensors}"
       "quant={train: {observe: 8}}" optimizer.lr=2e-4 schedule=constant)
ok "$train" "${aware[@]}" "$(taught 'weight: 1, temperature: 2')" --output "$folder/taught" "${steps[@]}"
ok "$train" "${aware[@]}" "$(taught 'weight: 1, loss: mse')" --output "$folder/squared" "${steps[@]}"
ok "$train" "${aware[@]}" "$(taught 'weight: 0.25, temperature: 2')" "${steps[@]}" \
  --output "$folder/partly_taught"
ok "$train" "${aware[@]}" --output "$folder/untaught" "${steps[@]}"
quiet 0 "$train" "${aware[@]}" "$(taught 'weight: 1, temperature: 2')" "${steps[@]}" --eager \
  --output "$folder/taught_eagerly"
ok "$train" "${aware[@]}" "$(taught 'weight: 1, temperature: 2')" train.steps=20 train.log_every=1 \
  --output "$folder/resumed_taught"
ok "$train" --resume "$folder/resumed_taught" train.steps=40
cmp -s <(losses "$folder/taught") <(losses "$folder/resumed_taught") || fail "a resumed teacher differs"
python3 - "$folder" <<'P' || fail "a teacher"
import json, os, sys
folder = sys.argv[1]
def losses(name):
    lines = [json.loads(l) for l in open(f"{folder}/{name}/metrics.jsonl")]
    return [l["loss"] for l in lines if l["kind"] == "train"]
taught, squared, partly, untaught = map(losses, ("taught", "squared", "partly_taught", "untaught"))
# While ranges are observed, a student with the teacher's weights gives its outputs.
assert abs(taught[0]) < 1e-6 and abs(squared[0]) < 1e-6, (taught[0], squared[0])
assert abs(partly[0] - 0.75 * untaught[0]) < 1e-6, (partly[0], untaught[0])
# Later it differs from it by what rounding costs.
assert 0 < taught[-1] < 0.1 * untaught[0], (taught[-1], untaught[0])
assert all(abs(a - b) < 1e-3 for a, b in zip(taught, losses("taught_eagerly")))
# The teacher is not in the model.
size = lambda name: os.path.getsize(f"{folder}/{name}/model/model.safetensors")
assert size("taught") == size("untaught"), (size("taught"), size("untaught"))
P
ok "$quant" "$folder/taught" -o "$folder/taught8" --write-anyway
expect 3 "needs 'model'" "$train" "${aware[@]}" "quant={train: {teacher: {weight: 0.5}}}" \
  --output "$folder/x"
expect 3 "/nowhere: is not a model folder" "$train" "${aware[@]}" \
  "quant={train: {teacher: {model: /nowhere}}}" --output "$folder/x"
expect 3 "weight': expected a number above 0" "$train" "${aware[@]}" "$(taught 'weight: 0')" \
  --output "$folder/x"
finish
