#!/usr/bin/env bash
# cuBLASLt and cuDNN on stand-ins at their C interfaces, which compute and check every argument:
# products, convolutions and attention have the results of the CPU, lines train as on the CPU and with
# the same bits whatever the order of streams, and errors of the libraries end a run with one line or
# leave the work to the project's own kernels.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
fake="$(realpath "$bin/../fake_cuda")"
for library in libcuda.so.1 libnvrtc.so.13 libcublasLt.so.13 libcudnn.so.9; do
  [[ -e "$fake/$library" ]] || { echo "the stand-ins are not built"; exit 77; }
done
export PADDLE_CUDA_LIBRARIES="$fake" PADDLE_FAKE_CUDA_CUBLASLT=1 PADDLE_FAKE_CUDA_CUDNN=1

# by LIBRARY_CALL TOLERANCE OPERATION ARGUMENTS…: the call computes it, with the CPU's result.
by() {
  local call="$1" tolerance="$2"
  shift 2
  "$bin/paddle-op" run "$@" --compiled -o "$folder/cpu.npz" --overwrite > /dev/null 2> "$folder/error" ||
    { fail "$* on the CPU:"; return; }
  PADDLE_FAKE_CUDA_LOG="$folder/log" "$bin/paddle-op" run "$@" --compiled --device cuda -o "$folder/cuda.npz" --overwrite \
    > /dev/null 2> "$folder/error" || { fail "$* on cuda:"; return; }
  local launches
  launches="$(sed -n 's/^launch \(cublasLtMatmul\|cudnnBackendExecute\) .*/\1/p' "$folder/log")"
  [[ "$launches" == "$call" ]] || fail "$* is computed by '$launches':"
  python3 tests/support/cuda/compare_arrays.py "$folder/cpu.npz" "$folder/cuda.npz" "$tolerance" 2> "$folder/error" ||
    fail "$* differs from the CPU:"
}

# Products: operands in either order of their axes, batches, biases, a long sum with a workspace.
product() { by cublasLtMatmul "$@"; }
for t in f32 bf16 f16; do
  tolerance=2e-6
  [[ "$t" == f32 ]] || tolerance=1e-2
  product "$tolerance" matmul "x=$t[20,33]" "y=$t[33,12]"
  product "$tolerance" matmul "x=$t[33,20]" "y=$t[12,33]" transpose_x=true transpose_y=true
  product "$tolerance" matmul "x=$t[2,3,9,17]" "y=$t[2,3,17,10]"
  product "$tolerance" matmul "x=$t[4,9,17]" "y=$t[17,10]"
  product "$tolerance" linear "x=$t[5,9,24]" "weight=$t[24,16]" "bias=$t[16]"
  product "$tolerance" matmul "x=$t[9,600]" "y=$t[600,10]"
done
# The library computes neither few rows nor batches without one stride.
by "" 2e-6 matmul 'x=f32[8,33]' 'y=f32[33,12]'
by "" 2e-6 matmul 'x=f32[2,1,9,17]' 'y=f32[1,3,17,10]'

# Convolutions: groups, strides, dilations, uneven padding, three axes, both orders of axes.
convolution() { by cudnnBackendExecute "$@"; }
for t in f32 bf16; do
  tolerance=4e-6
  [[ "$t" == f32 ]] || tolerance=1e-2
  for format in NCHW NHWC; do
    x="[2,6,11,9]" y="[2,8,6,5]"
    [[ "$format" == NCHW ]] || { x="[2,11,9,6]"; y="[2,6,5,8]"; }
    given=(groups=2 'padding=[1,1,1,1]' 'stride=[2,2]' "data_format=$format")
    dims="${x//[\[\]]/}"
    convolution "$tolerance" conv2d "x=$t$x" "weight=$t[8,3,3,3]" "bias=$t[8]" "${given[@]}"
    convolution "$tolerance" conv2d_input_grad "weight=$t[8,3,3,3]" "grad=$t$y" "input_shape=[$dims]" 'dilation=[1,1]' "${given[@]}"
    convolution "$tolerance" conv2d_weight_grad "x=$t$x" "grad=$t$y" 'weight_shape=[8,3,3,3]' 'dilation=[1,1]' "${given[@]}"
  done
  convolution "$tolerance" conv2d "x=$t[1,4,9,9]" "weight=$t[10,4,3,2]" 'dilation=[2,1]' 'padding=[0,2,1,0]'
  convolution "$tolerance" conv3d "x=$t[1,4,5,6,7]" "weight=$t[6,4,2,3,3]" 'padding=[1,1,1,1,1,1]'
done

# Attention in bfloat16 and its gradient, with and without causality; masks and float32 are ours.
# attention CALL TYPE QUERIES KEYS ARGUMENTS…
attention() {
  local call="$1" t="$2" q="$3" k="$4"
  shift 4
  local given=("query=$t[2,$q,3,16]" "key=$t[2,$k,3,16]" "value=$t[2,$k,3,16]" scale=0.3 "$@")
  by "$call" 2e-2 attention "${given[@]}"
  by "$call" 2e-2 attention_grad "grad=$t[2,$q,3,16]" "out=$t[2,$q,3,16]" "log_sum=f32[2,3,$q]{2,4}" "${given[@]}"
}
attention cudnnBackendExecute bf16 20 20 is_causal=true
attention cudnnBackendExecute bf16 20 33
attention "" f32 20 20 is_causal=true
attention "" bf16 20 20 'mask=bf16[1,20,20]'
attention "" bf16 20 33 is_causal=true

# Lines have the CPU's losses, by the libraries, and the same bits in another order of streams.
random() { printf '{kind: random, size: %s, fields: [%s]}' "$1" "$2"; }
# line NAME TOLERANCE CALLS ARGUMENTS…: each of the comma-separated library calls was made.
line() {
  local name="$1" tolerance="$2" calls="$3"
  shift 3
  set -- "$@" train.steps=4 train.log_every=1 train.evaluate_every=never
  "$train" "$@" --output "$folder/$name-cpu" > "$folder/out" 2> "$folder/error" || fail "$name on the CPU:"
  PADDLE_FAKE_CUDA_LOG="$folder/log" "$train" "$@" --device cuda --output "$folder/$name-cuda" \
    > "$folder/out" 2> "$folder/error" || fail "$name on cuda:"
  PADDLE_FAKE_CUDA_SEED=11 "$train" "$@" --device cuda --output "$folder/$name-again" \
    > "$folder/out" 2> "$folder/error" || fail "$name again:"
  cmp -s "$folder/$name-cuda/model/model.safetensors" "$folder/$name-again/model/model.safetensors" ||
    fail "$name: another order of streams gives other weights:"
  for call in ${calls//,/ }; do
    grep -q "^launch $call " "$folder/log" || fail "$name does not call $call:"
  done
  python3 - "$folder" "$name" "$tolerance" <<'P' || fail "$name: other losses:"
import json, sys
folder, name, tolerance = sys.argv[1:]
def losses(device):
    records = map(json.loads, open(f"{folder}/{name}-{device}/metrics.jsonl"))
    return [r["loss"] for r in records if r["kind"] == "train"]
cpu, cuda = losses("cpu"), losses("cuda")
assert len(cpu) == len(cuda) == 4 and cpu[0] != cpu[-1], (cpu, cuda)
worst = max(abs(a - b) / max(abs(a), 1e-3) for a, b in zip(cpu, cuda))
print(f"{name}: worst relative difference {worst:.1e}")
assert worst < float(tolerance), worst
P
}
gpt=(configs/bench/gpt2_124m.yaml data.batch_size=2 "params={layers: 2, heads: 2, width: 16, vocab_size: 50, positions: 64}"
  "data.train=$(random 8 '{name: tokens, dtype: int64, shape: [16], low: 0, high: 50}, {name: targets, dtype: int64, shape: [16], low: 0, high: 50}')")
line gpt 1e-4 cublasLtMatmul "${gpt[@]}"
line gpt-bf16 1e-3 cublasLtMatmul,cudnnBackendExecute "${gpt[@]}" precision=bf16 amp.level=O2
line lenet 1e-4 cublasLtMatmul,cudnnBackendExecute configs/bench/lenet.yaml data.batch_size=9
line lenet-bf16 1e-2 cublasLtMatmul,cudnnBackendExecute configs/bench/lenet.yaml data.batch_size=9 precision=bf16
line lstm 1e-4 cublasLtMatmul configs/bench/lstm_lm.yaml params.vocab_size=60 params.width=12 data.batch_size=2 \
  "data.train=$(random 8 '{name: tokens, dtype: int64, shape: [5], low: 0, high: 60}, {name: targets, dtype: int64, shape: [5], low: 0, high: 60}')"

# Errors. Where a library cannot be prepared the project's own kernels compute, with their losses; an
# error of a call that queues work ends the run with one line.
cat > "$folder/net.yaml" <<'Y'
model:
  inputs: {x: "float32[batch, 2, 8, 8]"}
  model: "p = linear(relu(linear(flatten(conv2d(x, 10, 3)), 12)), 9)"
  outputs: [p]
loss: cross_entropy(p, label)
optimizer: {name: sgd, lr: 0.1}
data:
  batch_size: 10
  train: {kind: random, size: 20, fields: [{name: x, shape: [2, 8, 8]}, {name: label, dtype: int64, low: 0, high: 9}]}
train: {steps: 2, log_every: 1, evaluate_every: never}
Y
run() {
  local status=0
  timeout 60 "$train" "$folder/net.yaml" --device cuda --overwrite --output "$folder/run" > "$folder/out" 2> "$folder/error" || status=$?
  echo "$status"
}
losses() { grep '"kind":"train"' "$folder/run/metrics.jsonl" | sed 's/.*"loss":\([^,]*\),.*/\1/'; }
[[ "$(run)" == 0 ]] || fail "without a fault:"
losses > "$folder/losses"
[[ "$(wc -l < "$folder/losses")" == 2 ]] || fail "two losses are expected"
# fault VARIABLE CALL:N STATUS TEXT
fault() {
  local status
  status="$(export "$1=$2" && run)"
  [[ "$status" == "$3" ]] || { fail "$2 gives status $status:"; return; }
  if [[ "$3" == 0 ]]; then
    paste "$folder/losses" <(losses) | awk '{ if ($2 == "" || $1 - $2 > 1e-5 || $2 - $1 > 1e-5) exit 1 }' ||
      fail "$2 changes the losses:"
  elif [[ "$(wc -l < "$folder/error")" != 1 ]] || ! grep -q "$4" "$folder/error"; then
    fail "$2 is not reported as '$4':"
  fi
}
lt=PADDLE_FAKE_CUDA_CUBLASLT_FAIL
fault "$lt" cublasLtCreate:1 0
fault "$lt" cublasLtMatmulAlgoGetHeuristic:1 0
fault "$lt" cublasLtMatmulDescCreate:1 6 "cuda: cublasLtMatmulDescCreate: CUBLAS_STATUS_EXECUTION_FAILED"
fault "$lt" cublasLtMatmul:3 6 "cuda: cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED"
dnn=PADDLE_FAKE_CUDA_CUDNN_FAIL
fault "$dnn" cudnnCreate:1 0
for call in cudnnBackendCreateDescriptor cudnnBackendSetAttribute cudnnBackendFinalize cudnnBackendGetAttribute; do
  for n in 1 4 9; do fault "$dnn" "$call:$n" 0; done
done
fault "$dnn" cudnnSetStream:1 6 "cuda: cudnnSetStream: CUDNN_STATUS_EXECUTION_FAILED"
fault "$dnn" cudnnBackendExecute:2 6 "cuda: cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED"

# paddle doctor names both libraries and their versions, or says what computes without them.
"$bin/paddle" doctor > "$folder/out" 2> "$folder/error" || fail "doctor:"
grep -q "cublaslt: $fake/libcublasLt.so.13, 13.99.1" "$folder/out" || { cat "$folder/out"; fail "doctor does not name cuBLASLt"; }
grep -q "cudnn: $fake/libcudnn.so.9, 9.99.1" "$folder/out" || { cat "$folder/out"; fail "doctor does not name cuDNN"; }
mkdir "$folder/two"
cp "$fake/libcuda.so.1" "$fake/libnvrtc.so.13" "$folder/two"
if ! python3 -c "import ctypes; ctypes.CDLL('libcudnn.so.9')" 2> /dev/null; then
  PADDLE_CUDA_LIBRARIES="$folder/two" HOME="$folder" PATH="/bin:$folder" "$bin/paddle" doctor > "$folder/out" 2> "$folder/error"
  grep -q "cudnn: not used, own kernels compute convolutions: libcudnn.so.9 was not found" "$folder/out" ||
    { cat "$folder/out"; fail "doctor does not say that cuDNN is missing"; }
fi
finish
