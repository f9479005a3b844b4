#!/usr/bin/env bash
# paddle.lang: models of the model language as layers.
source tests/python/setup.bash
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python -W error tests/python/lang.py "$folder"
