#!/usr/bin/env bash
# Kinds of datasets that are written in Python: batches, training with and without threads, errors.
source tests/python/setup.bash
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python -W error tests/python/readers.py "$folder"
