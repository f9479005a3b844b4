#!/usr/bin/env bash
# Limits of paddle-quant on metrics of the run's own config, built in or written in the model
# language, with the interval of the paired difference; and the numbers that paddle-eval prints.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
quant="$bin/paddle-quant"

ok "$train" configs/quickstart/digits.yaml --output "$folder/run" train.epochs=1 \
  "data.train={kind: digits, size: 6000, seed: 1, range: [0, 5000]}" \
  "data.valid={kind: digits, size: 6000, seed: 1, range: [5000, 6000]}" \
  'metrics.error=100*(1-accuracy(logits, label))' \
  'metrics.distance={state: {total: "sum((softmax(logits) - 0.1)**2)", n: "sum(ones_like(label))"}, value: "total/n", better: higher}'
# One scale for all of a weight: worse, and not by chance.
coarse=(quant.measure=false --scheme int4_weights "quant.weights={per: tensor, scale: range}")
ok "$quant" "$folder/run" -o "$folder/coarse" "${coarse[@]}" --write-anyway --json
ok "$bin/paddle-eval" "$folder/coarse/model.onnx" --config "$folder/run/model/config.yaml"
cp "$folder/out" "$folder/coarse.json"
ok "$bin/paddle-eval" "$folder/run"
cp "$folder/out" "$folder/float.json"
python3 - "$folder" <<'P' || fail "metrics of the report"
import json, sys
folder = sys.argv[1]
last = lambda name: json.loads(open(f"{folder}/{name}.json").read().strip().split("\n")[-1])
floats, coarse = last("float"), last("coarse")
report = json.load(open(folder + "/coarse/report.json"))["metrics"]
for name in ("loss", "accuracy", "error", "distance"):
    assert report[name]["float"] == floats[name], (name, report[name], floats)
    assert report[name]["quantized"] == coarse[name], (name, report[name], coarse)
assert "confidence95" not in report["loss"], report["loss"]
# The difference of paired values is known better than the values are.
for name in ("accuracy", "error", "distance"):
    low, high = floats["intervals"][name]
    assert 0 < report[name]["confidence95"] < 0.9 * (high - low) / 2, (name, report[name], low, high)
assert abs(report["error"]["confidence95"] - 100 * report["accuracy"]["confidence95"]) < 1e-9, report
P
grep -q "error .* → .* (±" "$folder/coarse/report.html" || fail "the page"

# Limits: by the metric's better direction, or as stated.
rejected() { expect 1 "$1" "$quant" "$folder/run" -o "$folder/x" --overwrite "${coarse[@]}" --json "${@:2}"; }
accepted() { ok "$quant" "$folder/run" -o "$folder/x" --overwrite "${coarse[@]}" "$@"; }
python3 - "$folder/coarse/report.json" > "$folder/limits" <<'P'
import json, sys
m = json.load(open(sys.argv[1]))["metrics"]
fall = m["distance"]["float"] - m["distance"]["quantized"]
change = m["loss"]["quantized"] / m["loss"]["float"] - 1
half = m["distance"]["confidence95"]
assert fall > half and change > 0, m
print(fall * 0.9, fall * 1.1, f"{100 * (fall + 0.5 * half)}%", fall + 1.2 * half,
      f"{90 * change}%", f"{110 * change}%")
P
read -r below above within beyond less more < "$folder/limits"
rejected "distance falls from" --accept "distance=$below"
rejected "distance falls from" --accept "distance.drop=$below"
accepted --accept "distance=$above"
accepted --accept "distance=$within"
accepted --accept "distance.rise=0"
rejected "change ±" --accept "distance=$within" --accept confidence=95
accepted --accept "distance=$beyond" --accept confidence=95
rejected "loss rises from" --accept "loss=$less"
accepted --accept "loss=$more"
rejected "too few samples, or values of whole batches" --accept "loss=$more" --accept confidence=95
rejected "accuracy falls by" --accept accuracy=0.01% --accept confidence=95
expect 3 "whether higher is better is not known" "$quant" "$folder/run" -o "$folder/y" --accept error=1
expect 3 "did you mean 'distance'" "$quant" "$folder/run" -o "$folder/y" --accept distanse=1
expect 3 "expected one of 'drop' and 'rise'" "$quant" "$folder/run" -o "$folder/y" \
  "quant.accept.metrics.error={drop: 1, rise: 2}"
expect 3 "expected a share" "$quant" "$folder/run" -o "$folder/y" --accept error.rise=much
expect 2 "expected NAME=LIMIT" "$quant" "$folder/run" -o "$folder/y" --accept accuracy
expect 3 "has no config with metrics" "$quant" models/lenet.yaml -o "$folder/y.onnx" \
  --data configs/quickstart/digits.yaml:valid --accept perplexity=2%
[[ ! -e "$folder/y" ]] || fail "a rejected call left something"

# An ONNX file with the config of its run.
ok "$bin/paddle-export" "$folder/run" -o "$folder/digits.onnx"
printf 'extends: %s\nquant: {accept: {metrics: {error: {rise: 50}}}}\n' "$folder/run/model/config.yaml" \
  > "$folder/quant.yaml"
ok "$quant" "$folder/digits.onnx" -c "$folder/quant.yaml" -o "$folder/from_file" quant.measure=false
python3 - "$folder" <<'P' || fail "metrics of an ONNX file"
import json, sys
metrics = json.load(open(sys.argv[1] + "/from_file/report.json"))["metrics"]
assert abs(metrics["error"]["float"] - json.load(open(sys.argv[1] + "/coarse/report.json"))["metrics"]["error"]["float"]) < 0.2, metrics
P

# Latencies at a declared batch: more samples take longer, and limits hold for that batch.
for batch in 1 64 2000; do
  ok "$quant" "$folder/run" -o "$folder/batch$batch" quant.measure=false "quant.accept.latency.batch=$batch" \
    --accept latency.speedup=0.01
done
python3 - "$folder" <<'P' || fail "latencies at a batch"
import json, sys
times = {}
for batch in (1, 64, 2000):  # more than the 1,000 samples of the data
    times[batch] = json.load(open(f"{sys.argv[1]}/batch{batch}/report.json"))["latency_ms"]
    assert times[batch]["batch"] == batch, times
for which in ("float", "quantized"):
    assert times[1][which] < times[64][which] < times[2000][which], times
P
grep -q "(batch 64)\|latency of 64 samples" "$folder/batch64/report.html" || fail "the page names the batch"
expect 1 "ms for a batch of 64, more than 0.001" "$quant" "$folder/run" -o "$folder/x" --overwrite --json \
  quant.measure=false --accept latency.batch=64 --accept latency.milliseconds=0.001
expect 1 "expected at least 500x" "$quant" "$folder/run" -o "$folder/x" --overwrite --json \
  quant.measure=false --accept latency.speedup=500
expect 3 "one of 'speedup' and 'latency.speedup'" "$quant" "$folder/run" -o "$folder/y" \
  --accept latency.speedup=1 --accept speedup=1
expect 3 "quant.accept.latency.batch" "$quant" "$folder/run" -o "$folder/y" --accept latency.batch=0

# Ranges that are the same on both sides of zero.
ok "$quant" "$folder/run" -o "$folder/abs_max" quant.measure=false --observer abs_max
python3 - "$folder" <<'P' || fail "abs_max"
import json, sys
layers = json.load(open(sys.argv[1] + "/abs_max/report.json"))["layers"]
assert all(l["input_range"][0] == -l["input_range"][1] < 0 for l in layers), layers
P

# Fixed dims, several of them after one option, before or after the model.
ok "$quant" --dim batch=1 "$folder/run" -o "$folder/fixed.onnx" quant.measure=false --batch 1 --samples 40
ok "$bin/paddle-export" "$folder/fixed.onnx" --dry-run --json
grep -q '"batch"' "$folder/out" && fail "the batch is still symbolic"
expect 2 "which needs --batch 4" "$quant" "$folder/run" -o "$folder/y" --dim batch=4
expect 2 "did you mean 'batch'" "$quant" "$folder/run" -o "$folder/y" --dim bach=1
expect 2 "no input of the model has such a dim" "$quant" "$folder/run" -o "$folder/y" --batch 1 --dim batch=1 rows=3
expect 2 "expected NAME=SIZE, found 'batch'" "$quant" "$folder/run" -o "$folder/y" --dim batch
ok "$bin/paddle-export" --dim batch=2 models/digits_cnn.yaml params.classes=4 -o "$folder/lenet.onnx"
expect 2 "--dim rows: the model has no such dim" "$bin/paddle-export" models/lenet.yaml -o "$folder/y.onnx" \
  --dim batch=2 rows=3
finish
