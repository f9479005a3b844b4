#!/usr/bin/env bash
# Kernels of operations on the stand-ins for the driver and NVRTC, compiled with checks: accesses
# outside of what was allocated, undefined behavior, and races of the threads of a block between
# barriers. Planted faults are found.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cli/expect.bash"
fake="$(realpath "$bin/../fake_cuda")"
[[ -e "$fake/libcuda.so.1" && -e "$fake/libnvrtc.so.13" ]] || { echo "the stand-ins are not built"; exit 77; }
export PADDLE_CUDA_LIBRARIES="$fake" ASAN_OPTIONS=detect_leaks=0
address="$("${CXX:-c++}" -print-file-name=libasan.so)"

# check KIND TABLE [FROM=>TO]: a table's cases with a check, in which a piece of text is replaced.
check() {
  local preload=""
  [[ "$1" != address ]] || preload="$address"
  mkdir -p "$folder/cache-$1"
  local cache="$folder/cache-$1"
  [[ -z "${3:-}" ]] || cache="$(mktemp -d -p "$folder")"
  env ${preload:+"LD_PRELOAD=$preload"} PADDLE_CACHE_DIR="$cache" PADDLE_FAKE_CUDA_CHECK="$1" PADDLE_FAKE_CUDA_EDIT="${3:-}" \
    "$bin/paddle-op" check "tests/op/cases/$2.jsonl" --device cuda --compiled > "$folder/out" 2>&1
}
kinds=(race undefined)
if [[ -e "$address" ]]; then kinds+=(address); else echo "the address sanitizer is not installed"; fi
for kind in "${kinds[@]}"; do
  for table in ${TABLES:-alignment attention conv norm pool recurrent scan sorting indexing reduction graph experts ragged sparse decoding complex}; do
    check "$kind" "$table" || { grep -v passed "$folder/out" | head -3; fail "$kind: $table:"; }
  done
done

# planted KIND TABLE FROM=>TO
planted() {
  check "$@" && fail "$1 does not find '$3'"
  grep -q "crashed" "$folder/out" || { tail -3 "$folder/out"; fail "$1: '$3' has another error"; }
}
planted race norm 'if (thread < width) values[thread] = fold(values[thread], values[thread + width]);
    __syncthreads();=>if (thread < width) values[thread] = fold(values[thread], values[thread + width]);'
planted undefined norm 'values[thread] = value;=>values[thread + kBlockThreads] = value;'
[[ ! -e "$address" ]] || planted address norm 'i < n; i += kBlockThreads=>i < n + 2048; i += kBlockThreads'
finish
