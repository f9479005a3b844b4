#!/usr/bin/env bash
# The real NVRTC, which needs no GPU, compiles every program of a GPT's training step and every
# template for three architectures, without stacks and spilled registers; our declarations are those
# of the real headers. Skipped where NVRTC is not installed.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
fake="$bin/../fake_cuda"
[[ -e "$fake/libcuda.so.1" && -e "$fake/libnvrtc.so.13" ]] || { echo "the stand-ins are not built"; exit 77; }

mkdir "$folder/sources"
PADDLE_CACHE_DIR="$folder/cache" PADDLE_CUDA_LIBRARIES="$fake" PADDLE_FAKE_CUDA_SOURCES="$folder/sources" \
  "$train" configs/text/char_gpt.yaml "params={layers: 1}" data.batch_size=2 train.steps=1 train.evaluate_every=never \
  "data.train={kind: random, size: 2, fields: [{name: tokens, dtype: int64, shape: [64], low: 0, high: 65}, {name: targets, dtype: int64, shape: [64], low: 0, high: 65}]}" \
  "data.valid={kind: random, size: 2, fields: [{name: tokens, dtype: int64, shape: [64], low: 0, high: 65}, {name: targets, dtype: int64, shape: [64], low: 0, high: 65}]}" \
  --device cuda --no-host-fallback --output "$folder/run" > "$folder/out" 2> "$folder/error" || fail "training:"
(($(ls "$folder/sources" | wc -l) >= 20)) || fail "the run made too few programs:"
python3 tests/support/cuda/compile_programs.py "$folder/sources" engine/kernels/cuda/device sm_80 sm_90a sm_100
status=$?
[[ "$status" != 77 ]] || exit 77
[[ "$status" == 0 ]] || fail "programs that NVRTC does not compile as they should be:"

headers=$(python3 - <<'P'
import glob, os, sys
places = [os.path.join(f, "../include") for f in os.environ.get("PADDLE_TEST_NVRTC", "").split(":") if f]
places += glob.glob(os.path.join(sys.prefix, "lib/python3*/site-packages/nvidia/*/include")) + ["/usr/local/cuda/include"]
print(next((p for p in places if os.path.exists(os.path.join(p, "cuda.h")) and os.path.exists(os.path.join(p, "nvrtc.h"))), ""))
P
)
if [[ -n "$headers" ]]; then
  "${CXX:-c++}" -std=c++20 -fsyntax-only -I engine -isystem "$headers" tests/support/cuda/declarations.cc 2> "$folder/error" ||
    fail "our declarations are not those of $headers:"
else
  echo "the headers of CUDA are not installed: declarations are not compared"
fi
finish
