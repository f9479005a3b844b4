#!/usr/bin/env bash
# The tables of operations on the device `mirror`: each forgotten copy is a crash, each missing wait a
# wrong value.
set -uo pipefail
status=0
for table in tests/op/cases/*.jsonl; do
  echo "$table"
  "$PADDLE_BIN/paddle-op" check "$table" --device mirror --no-host-fallback || status=1
done
exit $status
