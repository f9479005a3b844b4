#!/usr/bin/env bash
# Attention and its gradient on stand-ins for the driver and NVRTC, in the form that keeps scores in
# shared memory, against the CPU: sizes that end within tiles, wide and narrow heads, masks, and
# causality.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
fake="$bin/../fake_cuda"
[[ -e "$fake/libcuda.so.1" && -e "$fake/libnvrtc.so.13" ]] || { echo "the stand-ins are not built"; exit 77; }
export PADDLE_CUDA_LIBRARIES="$fake"

# compare NAME TOLERANCE OPERATION ARGUMENTS…
compare() {
  local name="$1" tolerance="$2"
  shift 2
  for device in cpu cuda; do
    "$bin/paddle-op" run "$@" --device "$device" -o "$folder/$device.npz" --overwrite > /dev/null 2> "$folder/error" ||
      { fail "$name on $device:"; return; }
  done
  python3 tests/support/cuda/compare_arrays.py "$folder/cpu.npz" "$folder/cuda.npz" "$tolerance" 2> "$folder/error" || fail "$name:"
}

# both TYPE TOLERANCE BATCH QUERIES KEYS HEADS WIDTH VALUE_WIDTH ARGUMENTS…
both() {
  local t="$1" tolerance="$2" b="$3" q="$4" k="$5" h="$6" w="$7" v="$8"
  shift 8
  local given=("query=$t[$b,$q,$h,$w]" "key=$t[$b,$k,$h,$w]" "value=$t[$b,$k,$h,$v]" scale=0.3 "$@")
  compare "attention ${given[*]}" "$tolerance" attention "${given[@]}"
  compare "attention_grad ${given[*]}" "$tolerance" attention_grad "grad=$t[$b,$q,$h,$v]" \
    "out=$t[$b,$q,$h,$v]" "log_sum=f32[$b,$h,$q]{2,4}" "${given[@]}"
}
both f32 4e-6 2 5 7 2 8 8 'mask=bool[2,1,5,7]'
both f32 4e-6 1 70 70 3 33 33 is_causal=true
both f32 4e-6 2 40 37 1 64 48 'mask=f32[40,37]' is_causal=true
both f32 4e-6 1 33 50 2 100 128
both bf16 2e-2 1 17 70 2 16 16 'mask=bf16[1,17,1]' is_causal=true
# Wider heads are products of matrices.
both f32 4e-6 1 6 7 1 130 4
finish
