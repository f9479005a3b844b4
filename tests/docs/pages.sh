#!/usr/bin/env bash
# Every YAML block of README and the guides is accepted, and every command of all pages is one that
# the programs know; those that need no other data are executed. check_pages.py says how.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
exec python3 tests/docs/check_pages.py "${PADDLE_BIN:?}"
