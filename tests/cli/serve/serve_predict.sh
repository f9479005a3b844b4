#!/usr/bin/env bash
# paddle-serve of models that are not language models: tables, images, arrays, ONNX files and programs
# of PaddlePaddle. The answers are those of paddle-infer for the same input (serve_predict_client.py).
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
here="$(dirname "${BASH_SOURCE[0]}")"
serve="$PADDLE_BIN/paddle-serve"
python3 tests/cli/infer/make_fitted_data.py "$folder" || exit 1
# A table with a column of images.
{ echo "photo,label"; for i in 0 1 2 3; do echo "valid_images/b/$i.png,0"; echo "valid_images/c/$i.png,1"; done; } > "$folder/photos.csv"
cat > "$folder/photos.yaml" <<YAML
model: {inputs: {photo: "float32[batch, 3, 20, 60]"}, model: [flatten, {linear: 2}], outputs: [logits]}
loss: cross_entropy(logits, label)
optimizer: {name: adam, lr: 0.01}
data:
  batch_size: 4
  train: {kind: csv, path: photos.csv, fields: [{name: photo, kind: image}, {name: label, scalar: true, dtype: int64}]}
  transforms: [{scale: {fields: photo, factor: 0.004}}]
YAML
for run in csv images target unknown photos; do
  config="$folder/$run.yaml"
  [[ "$run" != csv ]] || sed "s/SCALING/standard/" "$folder/csv.template" > "$config"
  "$train" "$config" --threads 1 data.workers=0 train.epochs=2 train.evaluate_every=never train.checkpoint_every=never --output "$folder/runs/$run" > "$folder/out" 2> "$folder/error" || fail "training of $run"
done

# The predictions of paddle-infer, for serve_predict_client.py to compare.
mkdir "$folder/wanted"
quiet 0 "$infer" "$folder/runs/csv" "$folder/valid.csv" --quiet --output "$folder/wanted/csv.jsonl"
quiet 0 "$infer" "$folder/runs/csv" "$folder/valid.csv" --quiet --output "$folder/wanted/csv.npz"
quiet 0 "$infer" "$folder/runs/csv" "$folder/valid.npz" --quiet --output "$folder/wanted/arrays.npz"
quiet 0 "$infer" "$folder/runs/csv" "$folder/valid.npz" --quiet --output "$folder/wanted/arrays.jsonl"
quiet 0 "$infer" "$folder/runs/target" "$folder/target.csv" --quiet --output "$folder/wanted/target.jsonl"
quiet 0 "$infer" "$folder/runs/unknown" "$folder/unknown.csv" --quiet --output "$folder/wanted/unknown.jsonl"
quiet 0 "$infer" "$folder/runs/images" "$folder/valid_images/b/0.png" "$folder/valid_images/c/1.png" --quiet --output "$folder/wanted/images.jsonl"
quiet 0 "$infer" "$folder/runs/photos" "$folder/photos.csv" --quiet --output "$folder/wanted/photos.jsonl"
program="tests/paddle_program/data/gpt_pir"
onnx="tests/data/quantized/lines_dynamic.onnx"
"$infer" "$onnx" --benchmark 1 --batch 2 > /dev/null 2>&1 || fail "the ONNX file"

cat > "$folder/serve.yaml" <<YAML
models:
  table: {path: runs/csv, max_batch: 16, batch_wait: 20ms}
  pictures: runs/images/model
  target: runs/target/checkpoints/latest
  unknown: runs/unknown
  photos: runs/photos
  onnx: $PWD/$onnx
  program: $PWD/$program.json
  plain: {path: plain.yaml, params: {width: 3}}
listen: {port: 0, keys: keys.txt}
limits: {max_batch: 32, request_time: 20s}
YAML
echo "a-secret-key" > "$folder/keys.txt"
cat > "$folder/plain.yaml" <<YAML
params: {width: 2}
inputs: {x: "float32[batch, width]", n: "int64[batch]", ok: "bool[batch]"}
model: return x * 2, n + 1, ok
outputs: [double, next, ok]
YAML

"$serve" --config "$folder/serve.yaml" > "$folder/log" 2> "$folder/error" &
server=$!
trap 'kill -KILL "$server" 2> /dev/null; rm -rf "$folder"' EXIT
for _ in $(seq 400); do grep -q "^listening on" "$folder/log" && break; sleep 0.05; done
port="$(sed -n 's|^listening on http://127.0.0.1:||p' "$folder/log")"
[[ -n "$port" ]] || fail "it does not listen: $(cat "$folder/log")"
grep -q "^table: predictions, 2 inputs, 1 output, batches of up to 16 rows" "$folder/log" || fail "$(cat "$folder/log")"
answer="$(timeout 120 python3 "$here/serve_predict_client.py" "$port" a-secret-key "$folder" "$program" "$onnx" 2>&1)" || fail "$answer"
kill -TERM "$server"
wait "$server" || fail "the end: status $?"
grep -q "^stopped" "$folder/log" || fail "$(cat "$folder/log")"
left="$(compgen -G "/dev/shm/paddle-$server-*")" && fail "files of requests are left: $left"

# Names, settings and models that are not there.
quiet 0 "$serve" "$folder/runs/csv/model" "$folder/plain.yaml" "$onnx" "$program.json" --dry-run
for name in csv plain lines_dynamic gpt_pir; do
  grep -q "^$name: predictions" "$folder/out" || fail "no $name: $(cat "$folder/out")"
done
quiet 0 "$serve" models/lenet.yaml --max-batch 1 --dry-run --json
grep -qF '{"name":"lenet","inputs":1,"outputs":1,"max_batch":1}' "$folder/out" || fail "$(cat "$folder/out")"
quiet 0 "$serve" "$folder/plain.yaml" params.width=5 --dry-run
expect 2 "nowhere.onnx" "$serve" nowhere.onnx
expect 2 "'csv' is not a language model, on which 'kv' has no effect" "$serve" "$folder/runs/csv" --kv int8 --dry-run
expect 2 "need one model, found 2" "$serve" "$folder/plain.yaml" "$onnx" params.width=5 --dry-run
make_llama
expect 2 "'llama' is a language model, on which 'weights' has no effect" "$serve" "$model" --weights x.safetensors --dry-run
quiet 0 "$serve" "$model" "$folder/plain.yaml" --dry-run
printf 'models: {a: {path: plain.yaml, max_batch: 0}}\n' > "$folder/bad.yaml"
expect 3 "bad.yaml:1:43: 'models.a.max_batch'" "$serve" --config "$folder/bad.yaml"
expect 2 "--batch-wait" "$serve" "$folder/plain.yaml" --batch-wait 1h
finish
