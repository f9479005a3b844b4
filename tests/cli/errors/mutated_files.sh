#!/usr/bin/env bash
# Flipped, cut, doubled and overwritten bytes in every file that the tools read: data sets, pictures,
# the files of a model, of a checkpoint and of a run. Each ends in time and memory, with a documented
# exit status and an error of a few lines, and never with a crash.
set -euo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
python3 "$(dirname "${BASH_SOURCE[0]}")/mutate_files.py" "${PADDLE_BIN:?}" "${@:-400}"
