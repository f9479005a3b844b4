#!/usr/bin/env bash
# Training and prediction on the device `mirror`, whose memory the host cannot read and whose streams
# execute lazily, have the results of the CPU bit for bit; runs move between devices; unknown
# devices are rejected.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"

losses() {
  python3 - "$1" <<'P'
import json, sys
for line in open(sys.argv[1]):
    o = json.loads(line)
    print({k: v for k, v in o.items() if k in ("kind", "step", "loss", "loss_scale") or "metric" in k})
P
}

# train NAME DEVICE ARGUMENTS…
train_on() {
  local name="$1" device="$2"
  shift 2
  "$train" "$@" train.log_every=1 train.checkpoint_every=2 --device "$device" \
    --output "$folder/$name-$device" > "$folder/out" 2> "$folder/error" ||
    fail "$name on $device: $(cat "$folder/error")"
  losses "$folder/$name-$device/metrics.jsonl" > "$folder/$name-$device.losses"
}

same() {
  local name="$1"
  train_on "$name" cpu "${@:2}"
  train_on "$name" mirror "${@:2}"
  [[ -s "$folder/$name-cpu.losses" ]] || fail "$name: no losses"
  cmp -s "$folder/$name-cpu.losses" "$folder/$name-mirror.losses" ||
    fail "$name: other losses on mirror: $(diff "$folder/$name-cpu.losses" "$folder/$name-mirror.losses" | head -4)"
  cmp -s "$folder/$name-cpu/model/model.safetensors" "$folder/$name-mirror/model/model.safetensors" ||
    fail "$name: other weights on mirror"
  grep -q '"device": "mirror"' "$folder/$name-mirror/run.json" || fail "$name: run.json names no device"
  # Without recorded work: the same bits.
  train_on "$name-off" mirror "${@:2}" compile.graphs=off
  cmp -s "$folder/$name-mirror.losses" "$folder/$name-off-mirror.losses" ||
    fail "$name: other losses without graphs"
  cmp -s "$folder/$name-mirror/model/model.safetensors" "$folder/$name-off-mirror/model/model.safetensors" ||
    fail "$name: other weights without graphs"
}

lenet=(configs/bench/lenet.yaml data.train.size=128 data.batch_size=32 train.steps=5
  "data.valid={kind: random, size: 32, fields: [{name: image, shape: [1, 28, 28]}, {name: label, dtype: int64, low: 0, high: 10}]}"
  "metrics={accuracy: 'accuracy(logits, label)'}")
gpt=(configs/bench/char_gpt_384.yaml "params={layers: 2, heads: 2, width: 32, vocab_size: 65, positions: 64}"
  "data.train={kind: random, size: 32, fields: [{name: tokens, dtype: int64, shape: [64], low: 0, high: 65}, {name: targets, dtype: int64, shape: [64], low: 0, high: 65}]}"
  data.batch_size=4 train.steps=5)
deepfm=(configs/bench/deepfm.yaml params.rows=500 data.batch_size=64 train.steps=5
  "data.train={kind: random, size: 256, fields: [{name: sparse, dtype: int64, shape: [26], low: 0, high: 500}, {name: dense, shape: [13]}, {name: label, low: 0, high: 1}]}")
same lenet "${lenet[@]}"
same gpt "${gpt[@]}"
same deepfm "${deepfm[@]}"
same lenet_eager "${lenet[@]}" train.steps=2 --eager
same gpt_accumulated "${gpt[@]}" train.accumulate=2 "clip={global_norm: 1.0}"
same gpt_f16 "${gpt[@]}" precision=f16 amp.level=O2

# Between log lines losses are read one step late; what is logged is the same.
for device in cpu mirror; do
  "$train" "${lenet[@]}" train.steps=9 train.log_every=4 train.evaluate_every=9 train.checkpoint_every=never \
    --device "$device" --output "$folder/late-$device" > "$folder/out" 2> "$folder/error" || fail "late losses on $device:"
  losses "$folder/late-$device/metrics.jsonl" > "$folder/late-$device.losses"
done
cmp -s "$folder/late-cpu.losses" "$folder/late-mirror.losses" || fail "losses that are read late differ"
(($(wc -l < "$folder/late-mirror.losses") >= 4)) || fail "late losses: lines are missing"
# An index out of range stops the run at the next line of the log, with its place in the model.
printf 'i,y\n0,1\n1,0\n1,1\n2,0\n1,1\n0,1\n1,0\n0,0\n' > "$folder/indices.csv"
cat > "$folder/indices.yaml" <<'Y'
model:
  inputs: {i: "int64[batch]"}
  model: "p = embedding(i * i, 2, 3)[:, 0]"
  outputs: [p]
loss: mse_loss(p, y)
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 1
  shuffle: false
  train: {kind: csv, path: indices.csv, fields: [{name: i, scalar: true, dtype: int64}, {name: y, scalar: true}]}
train: {epochs: 1, log_every: 3}
Y
for device in cpu mirror; do
  expect 4 "indices.yaml:3:15: " "$train" "$folder/indices.yaml" --device "$device" --output "$folder/bad-$device"
done
# A run that began on the CPU continues on mirror, and vice versa.
train_on half cpu "${lenet[@]}" train.steps=2
"$train" --resume "$folder/half-cpu" train.steps=5 --device mirror > /dev/null 2> "$folder/error" ||
  fail "resuming on mirror: $(cat "$folder/error")"
cmp -s "$folder/half-cpu/model/model.safetensors" "$folder/lenet-cpu/model/model.safetensors" ||
  fail "a run that continued on mirror has other weights"
train_on half mirror "${lenet[@]}" train.steps=2
"$train" --resume "$folder/half-mirror" train.steps=5 > /dev/null 2> "$folder/error" ||
  fail "resuming on the CPU: $(cat "$folder/error")"
cmp -s "$folder/half-mirror/model/model.safetensors" "$folder/lenet-cpu/model/model.safetensors" ||
  fail "a run that continued on the CPU has other weights"

python3 - "$folder/x.npy" <<'P'
import struct, sys
values = [((i * 37) % 101) / 101 - 0.5 for i in range(2 * 28 * 28)]
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 28, 28), }"
header += " " * (63 - (len(header) + 10) % 64) + "\n"
with open(sys.argv[1], "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    f.write(struct.pack(f"<{len(values)}f", *values))
P
(cd "$folder" && python3 -c "
import zipfile
zipfile.ZipFile('x.npz', 'w').write('x.npy', 'image.npy')")
for device in cpu mirror; do
  "$infer" "$folder/lenet-cpu/model" "$folder/x.npz" --device "$device" --output "$folder/$device.npz" --quiet \
    > /dev/null 2> "$folder/error" || fail "predicting on $device: $(cat "$folder/error")"
done
python3 - "$folder/cpu.npz" "$folder/mirror.npz" <<'P' || fail "mirror predicts something else"
import sys, zipfile
a, b = (zipfile.ZipFile(p) for p in sys.argv[1:])
assert a.namelist() == b.namelist() and a.namelist()
assert all(a.read(n) == b.read(n) for n in a.namelist())
P

# A language model: caches are on the device, tokens and logits are copied.
make_llama
for device in cpu mirror; do
  "$infer" "$model" --prompt "123" --length 12 --temperature 0 --device "$device" \
    > "$folder/text-$device" 2> "$folder/error" || fail "generating on $device: $(cat "$folder/error")"
done
[[ -s "$folder/text-cpu" ]] && cmp -s "$folder/text-cpu" "$folder/text-mirror" || fail "mirror generates another text"

expect 2 "unknown device 'gpu', expected one of cpu, mirror" "$train" "${lenet[@]}" --device gpu --output "$folder/none"
expect 2 "there is no device 'mirror:7'" "$infer" "$folder/lenet-cpu/model" "$folder/x.npz" --device mirror:7
expect 2 "compile.graphs: the device cpu cannot record work; expected auto or off" "$train" "${lenet[@]}" compile.graphs=on --output "$folder/none"

# Several ranks on the device, simulated and as processes, whatever they share: the bits of the CPU.
ranks=("${gpt[@]}" parallel.data=2 parallel.bucket=16KiB parallel.overlap=always)
for layout in "parallel.tensor=1" "parallel.sharding=3" "parallel.pipeline=2 parallel.micro_batches=2"; do
  read -ra sizes <<< "$layout"
  count=$([[ "$layout" == *pipeline* ]] && echo 4 || echo 2)
  for device in cpu mirror; do
    ok "$train" "${ranks[@]}" "${sizes[@]}" --simulate "$count" --device "$device" --output "$folder/ranks-$device" --overwrite
  done
  for file in model optimizer; do
    cmp "$folder"/ranks-{cpu,mirror}/checkpoints/latest/$file.safetensors || fail "$layout on mirror: other bits in $file"
  done
done
ok "$bin/paddle-launch" -n 2 paddle-train "${ranks[@]}" --device mirror --output "$folder/processes"
ok "$train" "${ranks[@]}" --simulate 2 --output "$folder/threads"
cmp "$folder"/{threads,processes}/checkpoints/latest/model.safetensors || fail "processes on mirror: other bits"
finish
