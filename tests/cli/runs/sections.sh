#!/usr/bin/env bash
# One config for several tools: each reads its own section and checks what the others read, so a typo
# anywhere is found by whichever tool reads the file. `paddle schema` prints each section.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
printf 'a,b,label\n1,2,0\n2,1,1\n3,4,0\n4,3,1\n' > "$folder/rows.csv"
# config FILE LINES...: a run with further sections.
config() {
  local file="$folder/$1"
  shift
  cat > "$file" <<'Y'
model:
  inputs: {x: "float32[batch, 2]"}
  model: "logits = linear(x, 2)"
  outputs: [logits]
loss: cross_entropy(logits, label)
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 2
  train: &rows
    kind: csv
    path: rows.csv
    fields: [{name: x, columns: [a, b]}, {name: label, scalar: true, dtype: int64}]
  valid: *rows
train: {epochs: 1, log_every: 10}
Y
  printf '%s\n' "$@" >> "$file"
}
config all.yaml 'quant: {scheme: int8_weights}' 'parallel: {data: 1}' \
  'serve: {models: {tiny: tiny.gguf}, limits: {streams: 2}}' 'tune: {what: [threads], time_limit: 3}'
expect 0 "" "$train" "$folder/all.yaml" --overwrite --output "$folder/run"
expect 0 "" "$bin/paddle-quant" "$folder/run" --config "$folder/all.yaml" -o "$folder/quantized"
# Sections of other tools do not appear where they are left out, and keep a run from nothing.
config plain.yaml
"$train" "$folder/plain.yaml" --dump-config > "$folder/dump" 2> "$folder/error" || fail "--dump-config"
! grep -Eq '^(serve|tune):' "$folder/dump" || fail "absent sections are in the dump"
# A config that was written with all defaults reads back, exceptions of layers included.
"$train" "$folder/all.yaml" "quant.layers=[{match: 'linear*', keep: float32}]" --dump-config > "$folder/whole.yaml" 2> "$folder/error" || fail "--dump-config"
"$train" "$folder/whole.yaml" --dump-config > "$folder/again.yaml" 2> "$folder/error" || fail "a dumped config:"
cmp -s "$folder/whole.yaml" "$folder/again.yaml" || fail "a dumped config changes: $(diff "$folder/whole.yaml" "$folder/again.yaml" | head -4)"
expect 0 "" "$train" --resume "$folder/run" train.epochs=2 serve.limits.streams=4 tune.time_limit=9
# tune: says what the command line leaves out.
expect 2 "planning needs the cluster" "$bin/paddle-tune" "$folder/all.yaml" tune.what=parallel
expect 3 "no repeated blocks" "$bin/paddle-tune" "$folder/all.yaml" tune.what=parallel tune.cluster=cluster.yaml
expect 2 "did not end in 0 s" "$bin/paddle-tune" "$folder/all.yaml" tune.time_limit=0 -o "$folder/tuned"
expect 2 "cannot be combined with 'threads'" "$bin/paddle-tune" "$folder/all.yaml" "tune.what=[parallel, threads]"
# A typo in any section, by any tool.
n=0
for typo in "quant: {sheme: int8}|'sheme' in 'quant' (did you mean 'scheme'?)" \
  "parallel: {dat: 1}|'dat' in 'parallel' (did you mean 'data'?)" \
  "serve: {limits: {stream: 2}}|'stream' in 'serve.limits' (did you mean 'streams'?)" \
  "serve: {listen: {port: 70000}}|'serve.listen.port': expected an integer of at least 0 and at most 65535" \
  "tune: {what: [thread]}|did you mean 'threads'?" "tune: {time: 3}|unknown key 'time' in 'tune'"; do
  n=$((n + 1))
  config "typo$n.yaml" "${typo%%|*}"
  expect 3 "${typo##*|}" "$train" "$folder/typo$n.yaml" --output "$folder/none"
  expect 3 "typo$n.yaml:15:" "$bin/paddle-quant" "$folder/run" --config "$folder/typo$n.yaml" -o "$folder/none"
  expect 3 "${typo##*|}" "$bin/paddle-tune" "$folder/typo$n.yaml" --time-limit 1 -o "$folder/none"
  expect 3 "${typo##*|}" "$bin/paddle-infer" "$folder/run" --data "$folder/typo$n.yaml:valid"
  expect 3 "${typo##*|}" "$bin/paddle-eval" "$folder/run" --data "$folder/typo$n.yaml:valid"
  expect 3 "${typo##*|}" "$bin/paddle-serve" --config "$folder/typo$n.yaml" tiny.gguf
done
# Keys that no tool has, and a training config that serves nothing.
config key.yaml 'srve: {}'
for tool in "$train $folder/key.yaml" "$bin/paddle-quant $folder/run --config $folder/key.yaml" \
  "$bin/paddle-serve --config $folder/key.yaml" "$infer $folder/run --data $folder/key.yaml:valid"; do
  expect 3 "key.yaml:15:1: unknown key 'srve' (did you mean 'serve'?)" $tool
done
expect 3 "plain.yaml:1:1: expected models, listen and limits, or a section 'serve' with them" "$bin/paddle-serve" --config "$folder/plain.yaml"
# The others check the keys that only the trainer reads, with the trainer's messages.
n=0
for typo in "s/epochs: 1/epoch: 1/|14:9: unknown key 'epoch' in 'train' (did you mean 'epochs'?)" \
  "s/log_every: 10/log_every: often/|14:31: 'train.log_every': expected an integer of at least 1 or 'N epochs', found" \
  "s/lr: 0.1/rate: 0.1/|unknown key 'rate' in 'optimizer'" \
  "s/name: sgd/name: sgdd/|found 'sgdd' (did you mean 'sgd'?)" \
  "s/logits, label)/logits label)/|run9.yaml:5:" \
  "\$ a amp: {custom_low: [matmull]}|amp.custom_low: unknown operation 'matmull' (did you mean 'matmul'?)" \
  "\$ a compile: {fusoin: false}|unknown key 'fusoin' in 'compile' (did you mean 'fusion'?)" \
  "\$ a metrics: {top: 'acuracy(logits, label'}|'(' is never closed" "\$ a optimizers: {a: {name: sgd, lr: 1}}|either 'optimizer' or 'optimizers'"; do
  n=$((n + 1))
  config "run$n.yaml" 'serve: {models: {tiny: tiny.gguf}}'
  sed -i "${typo%%|*}" "$folder/run$n.yaml"
  text="${typo##*|}"
  text="${text/run9/run$n}"
  expect 3 "$text" "$train" "$folder/run$n.yaml" --output "$folder/none"
  head -1 "$folder/error" > "$folder/first"
  [[ "$text" != *optimizers* ]] || continue # a choice among keys is the trainer's
  for tool in "$bin/paddle-quant $folder/run --config $folder/run$n.yaml -o $folder/none" \
    "$bin/paddle-serve --config $folder/run$n.yaml" "$infer $folder/run --data $folder/run$n.yaml:valid" \
    "$bin/paddle-eval $folder/run --data $folder/run$n.yaml:valid" "$bin/paddle-tune $folder/run$n.yaml --time-limit 1 -o $folder/none"; do
    expect 3 "$text" $tool
    diff <(sed 's/^[a-z-]*: //' "$folder/first") <(head -1 "$folder/error" | sed 's/^[a-z-]*: //') > "$folder/out" ||
      fail "another message than the trainer's by $tool: $(< "$folder/out")"
  done
done
# The server reads its section of a config, and a file of its own as before.
expect 2 "tiny.gguf" "$bin/paddle-serve" --config "$folder/all.yaml" --port 0
printf 'models: {tiny: tiny.gguf}\nlimit: {}\n' > "$folder/serve.yaml"
expect 3 "serve.yaml:2:1: unknown key 'limit' (did you mean 'limits'?)" "$bin/paddle-serve" --config "$folder/serve.yaml"
# Each section has a schema, and the one of a run has them all.
for name in data parallel quant serve tune; do
  "$bin/paddle-schema" "$name" > "$folder/$name.json" 2> "$folder/error" || fail "paddle schema $name"
done
"$bin/paddle-schema" train > "$folder/train.json" || fail "paddle schema train"
python3 - "$folder" <<'P' || fail "schemas of sections"
import json, sys
keys = json.load(open(sys.argv[1] + "/train.json"))["properties"]
for name in ("data", "parallel", "quant", "serve", "tune"):
    own = json.load(open(f"{sys.argv[1]}/{name}.json"))["properties"]
    forms = keys[name].get("anyOf", [keys[name]])
    if not any(form.get("properties", {}).keys() == own.keys() for form in forms):
        sys.exit(f"{name}: {sorted(own)} are not the keys in a run's config")
P
expect 2 "did you mean 'tune'?" "$bin/paddle-schema" tun
finish
