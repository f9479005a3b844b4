#!/usr/bin/env bash
# Operations against reference values of other frameworks (made by make_cases.py), in both modes, with
# inputs that are contiguous in memory and with transposed inputs.
set -uo pipefail
status=0
for table in tests/op/cases/*.jsonl; do
  for layout in "" --strided; do
    echo "$table $layout"
    "$PADDLE_BIN/paddle-op" check "$table" $layout || status=1
  done
done
# Small shapes run on our own loops; these tables again on the other backend's kernels.
for table in pool norm recurrent conv products; do
  echo "$table on onednn"
  "$PADDLE_BIN/paddle-op" check "tests/op/cases/$table.jsonl" --backend onednn || status=1
done
exit $status
