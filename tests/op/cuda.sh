#!/usr/bin/env bash
# The tables of operations on the device `cuda`, on stand-ins for the driver and NVRTC that run the
# kernels' text on the CPU, in both modes. Operations that run on the host are those that
# cuda_host_operations.txt lists; the list may only shrink. Tables of complex numbers and those whose
# operations all run on the host are left to mirror.sh.
set -uo pipefail
fake="$(realpath "${PADDLE_BIN:?}/../fake_cuda")"
[[ -e "$fake/libcuda.so.1" && -e "$fake/libnvrtc.so.13" ]] || { echo "the stand-ins are not built"; exit 77; }
export PADDLE_CUDA_LIBRARIES="$fake"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
status=0
for table in alignment arrays attention binary box_losses classes conv creation distance forms fractional_pool indexing int8 legacy \
  legacy_layers loss moments norm numbers old_images old_values optimizers parameters pool products recurrent reduction \
  residual_units scan shape simulated sorting training transformer unary volume; do
  echo "$table"
  "$PADDLE_BIN/paddle-op" check "tests/op/cases/$table.jsonl" --device cuda || status=1
  "$PADDLE_BIN/paddle-op" check "tests/op/cases/$table.jsonl" --device cuda --no-host-fallback >> "$folder/host"
done
grep -o '[a-z0-9_.]*: the device cuda has no kernel' "$folder/host" | cut -d: -f1 | sort -u > "$folder/operations"
grep -v '^#' tests/op/cuda_host_operations.txt | sort -u > "$folder/listed"
if ! cmp -s "$folder/operations" "$folder/listed"; then
  echo "operations on the host, and those in cuda_host_operations.txt (<: new, >: no longer):"
  diff "$folder/operations" "$folder/listed"
  status=1
fi
exit $status
