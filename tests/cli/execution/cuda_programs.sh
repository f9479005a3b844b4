#!/usr/bin/env bash
# The real NVRTC, which needs no GPU, compiles every program of the lines' training steps and every
# template for three architectures, without stacks and spilled registers, and neighboring elements
# are read and stored 16 bytes at a time; our declarations are those of the real headers. Skipped
# where NVRTC is not installed.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
fake="$bin/../fake_cuda"
[[ -e "$fake/libcuda.so.1" && -e "$fake/libnvrtc.so.13" ]] || { echo "the stand-ins are not built"; exit 77; }

mkdir "$folder/sources"
random() { printf '{kind: random, size: 4, fields: [%s]}' "$1"; }
tokens() { printf '{name: %s, dtype: int64, shape: [16], low: 0, high: 50}' "$1"; }
# programs ARGUMENTS…: those of a training step; kernels are counted and do not run.
programs() {
  PADDLE_CACHE_DIR="$folder/cache" PADDLE_CUDA_LIBRARIES="$fake" PADDLE_FAKE_CUDA_SOURCES="$folder/sources" PADDLE_FAKE_CUDA_IDLE=1 \
    "$train" "$@" data.batch_size=2 train.steps=1 train.evaluate_every=never --device cuda --no-host-fallback \
    --overwrite --output "$folder/run" > "$folder/out" 2> "$folder/error" || fail "training $1:"
}
text="$(random "$(tokens tokens), $(tokens targets)")"
programs configs/text/char_gpt.yaml "params={layers: 1}" "data.train=$text" "data.valid=$text"
programs configs/bench/gpt2_124m.yaml precision=bf16 amp.level=O2 "params={layers: 1, heads: 2, width: 16, vocab_size: 50, positions: 16}" "data.train=$text"
programs configs/bench/lstm_lm.yaml params.vocab_size=60 params.width=12 "data.train=$text"
for precision in float32 bf16; do
  programs configs/bench/resnet50.yaml params.width=8 "params.depth=[1,1,1,1]" "precision=$precision"
  programs configs/bench/bert_base.yaml "params={layers: 1, heads: 2, width: 16, vocab_size: 50, positions: 16, classes: 2}" \
    "precision=$precision" "data.train=$(random "$(tokens tokens), {name: label, dtype: int64, low: 0, high: 2}")"
done
programs configs/bench/deepfm.yaml params.rows=300 \
  "data.train=$(random '{name: sparse, dtype: int64, shape: [26], low: 0, high: 300}, {name: dense, shape: [13]}, {name: label, low: 0, high: 1}')"
(($(ls "$folder/sources" | wc -l) >= 100)) || fail "the runs made too few programs: $(ls "$folder/sources" | wc -l)"
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
