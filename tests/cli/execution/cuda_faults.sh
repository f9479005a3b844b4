#!/usr/bin/env bash
# Errors of the driver at each call of a training run on stand-ins for the driver and NVRTC, and
# memory that ends at each allocation: the run ends with one line and the status of a device, or, where
# the call can be done without, with the usual result.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
fake="$bin/../fake_cuda"
[[ -e "$fake/libcuda.so.1" && -e "$fake/libnvrtc.so.13" ]] || { echo "the stand-ins are not built"; exit 77; }
export PADDLE_CUDA_LIBRARIES="$fake"
cat > "$folder/net.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 6]"}
  model: "p = linear(relu(linear(x, 5)), 2)"
  outputs: [p]
loss: cross_entropy(p, label)
optimizer: {name: adam, lr: 0.1}
data:
  batch_size: 4
  train: {kind: random, size: 12, fields: [{name: x, shape: [6]}, {name: label, dtype: int64, low: 0, high: 2}]}
train: {steps: 3, log_every: 1, evaluate_every: never}
Y
run() { timeout 60 "$train" "$folder/net.yaml" --device cuda --output "$folder/run" > "$folder/out" 2> "$folder/error"; }

PADDLE_FAKE_CUDA_LOG="$folder/log" run || fail "without a fault:"
grep '"kind":"train"' "$folder/run/metrics.jsonl" | sed 's/,"learning_rate.*//' > "$folder/losses"
[[ "$(wc -l < "$folder/losses")" == 3 ]] || fail "three losses are expected:"

# fault FAIL: one line and status 6, or the same losses. Prints the status.
runs=0
fault() {
  local status=0
  rm -rf "$folder/run"
  PADDLE_FAKE_CUDA_FAIL="$1" run || status=$?
  runs=$((runs + 1))
  if [[ "$status" == 0 ]]; then
    cmp -s "$folder/losses" <(grep '"kind":"train"' "$folder/run/metrics.jsonl" | sed 's/,"learning_rate.*//') ||
      fail "$1 changes the losses:"
  elif [[ "$status" != 6 || "$(wc -l < "$folder/error")" != 1 ]]; then
    fail "$1 gives status $status:"
  fi
  last=$status
}
while read -r kind name count; do
  [[ "$kind" == call ]] || continue
  for ((n = 1; n <= count; n += n < 6 ? 1 : 6)); do
    fault "$name:$n"
    case "$name" in  # calls that cannot be done without
      cuMemAlloc_v2 | cuEvent* | cu*Destroy* | cuMemFree* | cuStreamSynchronize) ;;
      *) [[ "$last" == 6 ]] || fail "$name:$n is not reported:" ;;
    esac
  done
done < "$folder/log"
# Memory that stays too small; a single failure frees what is kept and tries again.
for ((n = 1; n <= $(sed -n 's/^call cuMemAlloc_v2 //p' "$folder/log"); ++n)); do
  fault "cuMemAlloc_v2:$n+"
  [[ "$last" == 6 ]] || fail "cuMemAlloc_v2:$n+ is not reported:"
  grep -q "out of memory" "$folder/error" || fail "cuMemAlloc_v2:$n+ does not say what is missing:"
done
echo "$runs runs with a fault"
((runs >= 80)) || fail "only $runs faults were tried:"
finish
