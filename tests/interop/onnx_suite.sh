#!/usr/bin/env bash
# Runs the ONNX project's own test suite, planned, partitioned and node by node, against the
# lists of known failures next to this file. The onnx wheel is installed into a virtual environment
# in the build tree, which needs the network once; without it the test is skipped (77).
#
#   onnx_suite.sh [FOLDER OF PROGRAMS] [options of paddle-onnx check]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=1.23.2
bin=${PADDLE_BIN:-build/bin}
if (($# > 0)) && [[ -d $1 ]]; then
  bin=$1
  shift
fi
bin=$(cd "$bin" && pwd)
work=$bin/../interop/onnx-$version
venv=$work/venv

if [[ ! -e $work/cases.done ]]; then
  mkdir -p "$work"
  if ! { python3 -m venv "$venv" && "$venv/bin/pip" -q install "onnx==$version"; } >"$work/install.log" 2>&1; then
    echo "skipped: the onnx wheel cannot be installed ($(tail -n 1 "$work/install.log"))"
    exit 77
  fi
  "$venv/bin/python" -B tests/interop/onnx_cases.py "$work/cases" >"$work/cases.log" 2>&1
  touch "$work/cases.done"
fi

cases=("$work"/cases/{node,simple,pytorch-converted,pytorch-operator})
known=(--known tests/interop/onnx_known_failures.txt)
status=0
echo "-- planned where possible"
"$bin/paddle-onnx" check "${cases[@]}" "${known[@]}" --by-operator "$@" || status=1
echo "-- partitioned"
"$bin/paddle-onnx" check "${cases[@]}" "${known[@]}" --partitions "$@" || status=1
echo "-- node by node"
known+=(--known tests/interop/onnx_known_failures_eager.txt)
"$bin/paddle-onnx" check "${cases[@]}" "${known[@]}" --eager "$@" || status=1
exit $status
