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
# check TABLE: on all cores, since most of the time goes into compiling kernels.
check() {
  local name out
  name="$(basename "$1" .jsonl)"
  out="$folder/$name.out"
  "$PADDLE_BIN/paddle-op" check "$1" --device cuda > "$out" 2>&1 || touch "$folder/failed"
  "$PADDLE_BIN/paddle-op" check "$1" --device cuda --no-host-fallback > "$folder/$name.host" 2> /dev/null
  printf '%s\n%s\n' "$1" "$(cat "$out")"
}
export -f check
export folder
printf '%s\0' tests/op/cases/*.jsonl | xargs -0 -P "$(nproc)" -I{} bash -c 'check {}'
[[ ! -e "$folder/failed" ]] || status=1
cat "$folder"/*.host > "$folder/host"
grep -o '[a-z0-9_.]*: the device cuda has no kernel' "$folder/host" | cut -d: -f1 | sort -u > "$folder/operations"
grep -v '^#' tests/op/cuda_host_operations.txt | sort -u > "$folder/listed"
if ! cmp -s "$folder/operations" "$folder/listed"; then
  echo "operations on the host, and those in cuda_host_operations.txt (<: new, >: no longer):"
  diff "$folder/operations" "$folder/listed"
  status=1
fi
(($(wc -l < "$folder/listed") <= 60)) || { echo "more than 60 operations run on the host"; status=1; }
exit $status
