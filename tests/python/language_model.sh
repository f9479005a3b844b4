#!/usr/bin/env bash
# Language models and encoders: the first tokens are those that transformers computes, as in
# tests/api/language_model_test.cc; streams, conversations, interruption and errors.
source tests/python/setup.bash
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python -W error tests/python/language_model.py "$folder"
