#!/usr/bin/env bash
# 400 mutations of the committed configs, always the same ones: each run, dry run or check of the
# data ends in time and memory, with a documented exit status and a placed line.
set -euo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
python3 "$(dirname "${BASH_SOURCE[0]}")/mutate_configs.py" "${PADDLE_BIN:?}/paddle-train" "${@:-400}"
