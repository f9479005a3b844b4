#!/usr/bin/env bash
# replay.bash SUBJECT PROGRAM: the seeds of one target and what fuzzing found, without a fuzzer.
set -euo pipefail
here="$(dirname "${BASH_SOURCE[0]}")"
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
seeds="$(mktemp -d)"
trap 'rm -rf "$seeds"' EXIT
python3 "$here/make_seeds.py" "$seeds"
found=()
[[ -d "$here/found/$1" ]] && found=("$here/found/$1")
"$2" "$seeds/$1" "${found[@]}"
