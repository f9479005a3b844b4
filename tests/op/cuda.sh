#!/usr/bin/env bash
# The tables of operations on the device `cuda`, on stand-ins for the driver and NVRTC that run the
# kernels' text on the CPU, in both modes. Operations that run on the host are those that
# cuda_host_operations.txt lists; the list may only shrink.
set -uo pipefail
fake="$(realpath "${PADDLE_BIN:?}/../fake_cuda")"
[[ -e "$fake/libcuda.so.1" && -e "$fake/libnvrtc.so.13" ]] || { echo "the stand-ins are not built"; exit 77; }
export PADDLE_CUDA_LIBRARIES="$fake"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
status=0
for table in tests/op/cases/*.jsonl; do
  echo "$table"
  "$PADDLE_BIN/paddle-op" check "$table" --device cuda || status=1
  "$PADDLE_BIN/paddle-op" check "$table" --device cuda --no-host-fallback >> "$folder/host"
done
grep -o '[a-z0-9_.]*: the device cuda has no kernel' "$folder/host" | cut -d: -f1 | sort -u > "$folder/operations"
grep -v '^#' tests/op/cuda_host_operations.txt | sort -u > "$folder/listed"
if ! cmp -s "$folder/operations" "$folder/listed"; then
  echo "operations on the host, and those in cuda_host_operations.txt (<: new, >: no longer):"
  diff "$folder/operations" "$folder/listed"
  status=1
fi
(($(wc -l < "$folder/listed") <= 60)) || { echo "more than 60 operations run on the host"; status=1; }
exit $status
