#!/usr/bin/env bash
# A rehearsal of the gpu suite on stand-ins for the driver and NVRTC; without a GPU the suite says
# that it did not run.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
fake="$bin/../fake_cuda"
[[ -e "$fake/libcuda.so.1" && -e "$fake/libnvrtc.so.13" ]] || { echo "the stand-ins are not built"; exit 77; }

tests/gpu/run --fake --output "$folder/results" > "$folder/out" 2> "$folder/error" || fail "rehearsal: $(cat "$folder/out")"
cat "$folder/out"
for stage in facts libraries lines repeated speed faults operations; do
  grep -q '"status": "passed"' "$folder/results/"*"-$stage.json" || fail "the stage $stage has no result:"
done
# Stages that passed are left out. A stage that finds something wrong fails, and the others run.
tests/gpu/run --fake --changed --stages facts,repeated --output "$folder/results" > "$folder/out" 2> "$folder/error"
[[ "$(grep -c "passed before" "$folder/out")" == 2 ]] || fail "stages that passed run again: $(cat "$folder/out")"
PADDLE_FAKE_CUDA_FAIL=cuGraphInstantiateWithFlags:1 tests/gpu/run --fake --stages facts,repeated \
  --output "$folder/faulty" > "$folder/out" 2> "$folder/error" && fail "a fault is not reported:"
grep -q "facts *passed" "$folder/out" || fail "the stage facts fails: $(cat "$folder/out")"
grep -q "repeated *failed.*cuGraphInstantiateWithFlags" "$folder/out" || fail "the fault is not named: $(cat "$folder/out")"
tests/gpu/run --fake --budget 1 --output "$folder/short" > "$folder/out" 2> "$folder/error" && fail "a spent budget gives status 0:"
grep -q "not begun" "$folder/out" || fail "a spent budget is not reported: $(cat "$folder/out")"

if ! python3 -c "import ctypes; ctypes.CDLL('libcuda.so.1')" 2> /dev/null; then
  status=0
  env -u PADDLE_CUDA_LIBRARIES tests/gpu/run --output "$folder/none" > "$folder/out" 2> "$folder/error" || status=$?
  [[ "$status" == 77 ]] || fail "without a GPU the suite ends with $status:"
  grep -q "did not run" "$folder/out" || fail "the suite does not say that it did not run:"
fi
finish
