#!/usr/bin/env bash
# Python functions with decisions and loops by tensors, saved as models: what they give is what Python gives.
source tests/python/setup.bash
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python -W error tests/python/control_flow.py "$folder"
