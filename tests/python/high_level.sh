#!/usr/bin/env bash
# Model.fit with metrics, loaders with workers, operations of a program, ONNX files.
source tests/python/setup.bash
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python -W error tests/python/high_level.py "$folder" || fail "high_level.py"
