#!/usr/bin/env bash
# The tests that need an NVIDIA GPU (tests/gpu/run). Without one nothing runs, and the test says so.
set -uo pipefail
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
tests/gpu/run --output "$folder/results"
