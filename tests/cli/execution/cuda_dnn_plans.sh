#!/usr/bin/env bash
# The real cuDNN, which needs no GPU to plan, has plans for all convolutions and attentions of the
# training lines for three architectures; our declarations of cuDNN and cuBLASLt are those of the real
# headers. Skipped where cuDNN is not installed.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
fake="$(realpath "$bin/../fake_cuda")"
[[ -e "$fake/libcuda.so.1" && -e "$fake/libcudnn.so.9" ]] || { echo "the stand-ins are not built"; exit 77; }

# Declarations.
folders="$(python3 - <<'P'
import glob, os, sys
places = [os.path.join(f, "../include") for f in os.environ.get("PADDLE_TEST_CUDNN", "").split(":") if f]
places += glob.glob(os.path.join(sys.prefix, "lib/python3*/site-packages/nvidia/*/include")) + ["/usr/local/cuda/include"]
print("\n".join(p for p in places if os.path.isdir(p)))
P
)"
declared() { # HEADER MACRO
  local include=() found="" place
  while read -r place; do
    [[ -n "$place" ]] && include+=(-isystem "$place")
    [[ -e "$place/$1" ]] && found="$place"
  done <<< "$folders"
  [[ -n "$found" ]] || { echo "$1 is not installed: declarations are not compared"; return; }
  "${CXX:-c++}" -std=c++20 -fsyntax-only "-D$2" -I engine "${include[@]}" tests/support/cuda/library_declarations.cc \
    2> "$folder/error" || fail "our declarations are not those of $found/$1:"
}
declared cublasLt.h PADDLE_CHECK_CUBLASLT
declared cudnn_graph.h PADDLE_CHECK_CUDNN

# Graphs at full size; kernels are counted and do not run.
random() { printf '{kind: random, size: %s, fields: [%s]}' "$1" "$2"; }
# record MAXIMUM ARGUMENTS…: at most MAXIMUM kernels in the step.
record() {
  local most="$1" launches
  shift
  PADDLE_FAKE_CUDA_LOG="$folder/log" PADDLE_CUDA_LIBRARIES="$fake" PADDLE_FAKE_CUDA_CUDNN=1 PADDLE_FAKE_CUDA_CUBLASLT=1 PADDLE_FAKE_CUDA_IDLE=1 \
    PADDLE_FAKE_CUDA_MEMORY=60000000000 PADDLE_FAKE_CUDA_CUDNN_GRAPHS="$folder/graphs" \
    "$train" "$@" train.steps=1 train.evaluate_every=never --device cuda --overwrite --output "$folder/run" \
    > "$folder/out" 2> "$folder/error" || fail "recording $*:"
  rm -rf "$folder/run"
  launches="$(awk '/^launch/ { sum += $3 } END { print sum }' "$folder/log")"
  echo "$1: $launches kernels in a step"
  ((launches <= most)) || fail "$*: $launches kernels"
}
for precision in float32 bf16; do  # bfloat16 has casts around convolutions
  record 520 configs/bench/resnet50.yaml "precision=$precision"
  record 55 configs/bench/lenet.yaml "precision=$precision"
done
record 450 configs/bench/gpt2_124m.yaml precision=bf16 amp.level=O2 data.batch_size=16 \
  "data.train=$(random 32 '{name: tokens, dtype: int64, shape: [1024], low: 0, high: 50304}, {name: targets, dtype: int64, shape: [1024], low: 0, high: 50304}')"
record 450 configs/bench/bert_base.yaml precision=bf16 amp.level=O2
mkdir "$folder/stub"
python3 tests/support/cuda/dnn_plans.py "$folder/graphs" "$folder/stub" sm_80 sm_90a sm_100
status=$?
[[ "$status" != 77 || "$failures" != 0 ]] || exit 77
[[ "$status" == 0 ]] || fail "graphs without a plan"
(($(grep -c '^graph$' "$folder/graphs") >= 100)) || fail "only $(grep -c '^graph$' "$folder/graphs") graphs were recorded"
finish
