#!/usr/bin/env bash
# Functions that are saved as models: the tools give what Python gives, with any size that is free.
source tests/python/setup.bash
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python -W error tests/python/jit.py "$folder" || fail "jit.py"
"$PADDLE_BIN/paddle-infer" "$folder/net" --input "$folder/input.npz" --output "$folder/output.npz" --quiet > /dev/null ||
  fail "paddle infer"
"$PADDLE_BIN/paddle-export" "$folder/loop" --output "$folder/loop.onnx" > "$folder/export.out" || fail "paddle export: $(cat "$folder/export.out")"
grep -q "agrees with the model" "$folder/export.out" || fail "the ONNX file was not compared"
grep -q "jit.py:" "$folder/net/module.txt" || fail "operations have no lines of Python"
python -W error tests/python/jit.py "$folder" compare || fail "the outputs differ"
