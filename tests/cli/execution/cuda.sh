#!/usr/bin/env bash
# The device `cuda` on stand-ins for the driver and NVRTC, which run the kernels' text on the CPU: a
# GPT has the losses of the CPU within a tolerance, the same bits whatever the order of streams, and
# no operation on the host. Missing drivers, faults and bad data end a run with one line.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
fake="$bin/../fake_cuda"
[[ -e "$fake/libcuda.so.1" && -e "$fake/libnvrtc.so.13" ]] || { echo "the stand-ins are not built"; exit 77; }

gpt=(configs/text/char_gpt.yaml "params={layers: 2, heads: 2, width: 32, positions: 16}"
  "data.train={kind: random, size: 32, fields: [{name: tokens, dtype: int64, shape: [16], low: 0, high: 65}, {name: targets, dtype: int64, shape: [16], low: 0, high: 65}]}"
  "data.valid={kind: random, size: 8, fields: [{name: tokens, dtype: int64, shape: [16], low: 0, high: 65}, {name: targets, dtype: int64, shape: [16], low: 0, high: 65}]}"
  data.batch_size=4 train.steps=6 train.log_every=1 train.evaluate_every=3 train.checkpoint_every=3 lr=2.5e-2)
unset PADDLE_CUDA_LIBRARIES

# Without a driver: status 6, one line, at once, and no run on the CPU.
if ! python3 -c "import ctypes; ctypes.CDLL('libcuda.so.1')" 2> /dev/null; then
  most_lines=1
  expect 6 "cuda: there is no NVIDIA driver: libcuda.so.1 was not found" \
    "$train" "${gpt[@]}" --device cuda --output "$folder/none"
  [[ ! -e "$folder/none/metrics.jsonl" ]] || fail "a run without a GPU was started:"
  python3 - "$train" <<'P' || fail "the missing driver is noticed too late:"
import subprocess, sys, time
def once():
    begin = time.monotonic()
    subprocess.run([sys.argv[1], "configs/text/char_gpt.yaml", "--device", "cuda", "--output", "/dev/null/x"],
                   capture_output=True)
    return time.monotonic() - begin
assert min(once() for _ in range(5)) < 0.2
P
fi
export PADDLE_CUDA_LIBRARIES="$fake"
most_lines=1
expect 2 "there is no device 'cuda:2': 2 of kind 'cuda' found" "$train" "${gpt[@]}" --device cuda:2 --output "$folder/none"
PADDLE_FAKE_CUDA_DEVICES=0 expect 6 "no NVIDIA GPU was found by" "$train" "${gpt[@]}" --device cuda --output "$folder/none"
PADDLE_FAKE_CUDA_VERSION=11080 expect 6 "is the driver of CUDA 11.8; CUDA 12.0 (driver 525) or newer is needed" \
  "$train" "${gpt[@]}" --device cuda --output "$folder/none"
PADDLE_FAKE_CUDA_CAPABILITY=75 expect 6 "has capability 7.5; 8.0 or newer is needed" \
  "$train" "${gpt[@]}" --device cuda --output "$folder/none"

# train NAME DEVICE ARGUMENTS…
train_on() {
  local name="$1" device="$2"
  shift 2
  "$train" "${gpt[@]}" "$@" --device "$device" --output "$folder/$name" > "$folder/out" 2> "$folder/error" ||
    fail "$name on $device:"
}
train_on cpu cpu
mkdir "$folder/sources"
PADDLE_FAKE_CUDA_LOG="$folder/log" train_on first cuda --no-host-fallback
grep -q '"device": "cuda"' "$folder/first/run.json" || fail "run.json does not name the device:"
grep -q "launch group" "$folder/log" || fail "no generated kernel ran:"
grep -q "launch matmul" "$folder/log" || fail "no product ran:"
python3 - "$folder" <<'P' || fail "losses on cuda differ from those of the CPU:"
import json, sys
def numbers(name):
    out = []
    for line in open(f"{sys.argv[1]}/{name}/metrics.jsonl"):
        record = json.loads(line)
        out += [record[k] for k in ("loss", "gradient_norm") if k in record]
        out += [v for k, v in record.items() if "metric" in k and isinstance(v, float)]
    return out
cpu, cuda = numbers("cpu"), numbers("first")
assert len(cpu) == len(cuda) >= 8, (cpu, cuda)
worst = max(abs(a - b) / max(abs(a), 1e-3) for a, b in zip(cpu, cuda))
print("worst relative difference", worst)
assert worst < 1e-4, worst
assert cpu[0] != cpu[-1]
P

# Another order of streams, blocks and threads, and the other GPU: the same bits, nothing compiled.
for device in cuda cuda:1; do
  PADDLE_FAKE_CUDA_SEED=77 PADDLE_FAKE_CUDA_SOURCES="$folder/sources" train_on "again-$device" "$device"
  cmp -s "$folder/first/model/model.safetensors" "$folder/again-$device/model/model.safetensors" ||
    fail "another order on $device gives other weights:"
done
[[ -z "$(ls -A "$folder/sources")" ]] || fail "a second start compiles programs:"
# Kernels are queued as graphs, but in the first run; without them the same bits.
grep -q "call cuGraphLaunch" "$folder/log" || fail "no graph was launched:"
PADDLE_FAKE_CUDA_LOG="$folder/log-off" train_on off cuda compile.graphs=off
! grep -q "call cuGraphLaunch\|call cuStreamBeginCapture" "$folder/log-off" || fail "graphs that are off are launched:"
cmp -s "$folder/first/model/model.safetensors" "$folder/off/model/model.safetensors" || fail "graphs give other weights:"
cmp -s <(grep ^launch "$folder/log") <(grep ^launch "$folder/log-off") || fail "graphs hold other kernels:"
python3 - "$folder/log" "$folder/log-off" <<'P' || fail "graphs save no launches:"
import sys
on, off = ({n: int(c) for k, n, c in (l.split() for l in open(p)) if k == "call"} for p in sys.argv[1:])
assert on["cuLaunchKernel"] * 3 < off["cuLaunchKernel"] * 2, (on, off)
P
# An error while work is recorded ends the run with one line.
most_lines=1
PADDLE_FAKE_CUDA_FAIL=cuStreamEndCapture:1 expect 6 "cuda: cuStreamEndCapture: unknown error" \
  "$train" "${gpt[@]}" --device cuda --output "$folder/fault"
PADDLE_FAKE_CUDA_FAIL=cuGraphInstantiateWithFlags:2 expect 6 "cuda: cuGraphInstantiateWithFlags: unknown error" \
  "$train" "${gpt[@]}" --device cuda --output "$folder/fault"
most_lines=4
# A damaged cache is ignored.
for file in "${PADDLE_CACHE_DIR:?}"/cuda/*.cubin; do
  cp "$file" "$folder/kept" && printf x | dd of="$file" bs=1 seek=200 conv=notrunc 2> /dev/null
  break
done
train_on damaged cuda
cmp -s "$folder/first/model/model.safetensors" "$folder/damaged/model/model.safetensors" || fail "a damaged cache:"

# Runs move between devices.
train_on half cpu train.steps=3
"$train" --resume "$folder/half" train.steps=6 --device cuda > "$folder/out" 2> "$folder/error" || fail "resuming on cuda:"

# Faults: one line, and the status of a device.
most_lines=1
PADDLE_FAKE_CUDA_FAIL=cuLaunchKernel:40:700 expect 6 "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)" \
  "$train" "${gpt[@]}" --device cuda --output "$folder/fault"
PADDLE_FAKE_CUDA_FAIL=cuStreamSynchronize:2 expect 6 "cuda: cuStreamSynchronize: unknown error" \
  "$train" "${gpt[@]}" --device cuda --output "$folder/fault"
PADDLE_FAKE_CUDA_MEMORY=300000 expect 6 "cuda:0: out of memory: cannot allocate" "$train" "${gpt[@]}" --device cuda --output "$folder/fault"
most_lines=4
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
for device in cpu cuda; do
  expect 4 "indices.yaml:3:15: embedding: index 4 is outside of the table's 2 rows" \
    "$train" "$folder/indices.yaml" --device "$device" --output "$folder/bad-$device"
done
# Lengths of alignments, with the words of the CPU.
while read -r message call; do
  for device in cpu cuda; do
    # shellcheck disable=SC2086
    expect 4 "${message//_/ }" "$bin/paddle-op" run $call --device "$device"
  done
done <<'C'
lengths_has_9,_which_is_not_from_0_to_4 ctc_loss log_probs=f32[4,2,3] labels=i64[2,2](1,2,2,2) input_lengths=i64(4,9) label_lengths=i64(2,1)
lengths_has_3,_which_is_not_from_0_to_2 ctc_loss log_probs=f32[4,2,3] labels=i64[2,2](1,2,2,2) input_lengths=i64(4,4) label_lengths=i64(2,3)
label_5_is_not_one_of_3_classes ctc_loss log_probs=f32[4,2,3] labels=i64[2,2](1,5,2,2) input_lengths=i64(4,4) label_lengths=i64(2,1)
lengths_has_0,_which_is_not_from_1_to_3 rnnt_loss input=f32[2,3,3,4] label=i64[2,2](1,2,3,1) input_lengths=i64(3,0) label_lengths=i64(2,1)
C
finish
