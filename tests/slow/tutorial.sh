#!/usr/bin/env bash
# The commands of the tutorial run, and print what docs/guide/tutorial.md shows but for the numbers.
set -uo pipefail
for program in python3 curl awk; do
  command -v "$program" > /dev/null || { echo "$program is missing"; exit 77; }
done
exec scripts/make-tutorial --check "${PADDLE_BIN:?}"
