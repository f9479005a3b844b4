#!/usr/bin/env bash
# Runs `paddle-ir opt` on every case in tests/passes/*.ir and compares its output with the expected
# text. A case has these lines:
#
#   # what is tested
#   passes: NAMES          for --passes; without it the whole pipeline runs
#   needs: avx2            optional: a CPU flag without which the case is left out
#   --- rules              optional: rewrite rules for --rules
#   --- input              a module
#   --- output             the module afterwards
#
# `tests/passes/golden.sh --update [CASE…]` writes the output of the program as the expected text:
# read the diff before you commit it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
ir=${PADDLE_BIN:-$PWD/../../build/bin}/paddle-ir
update=0
if [[ ${1:-} == --update ]]; then
  update=1
  shift
fi
cases=("$@")
((${#cases[@]})) || cases=(*.ir)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# section NAME FILE: the lines between `--- NAME` and the next `---`.
section() { awk -v name="--- $1" '/^--- /{on = ($0 == name); next} on' "$2"; }
# field NAME FILE: the rest of the line `NAME: …` in the header.
field() { awk -v name="$1: " '/^--- /{exit} index($0, name) == 1 {print substr($0, length(name) + 1)}' "$2"; }

failed=0 run=0 skipped=0
for case in "${cases[@]}"; do
  needs=$(field needs "$case")
  if [[ -n $needs ]] && { [[ ${PADDLE_MAX_ISA:-} == sse4 ]] || ! grep -qw "$needs" /proc/cpuinfo; }; then
    echo "$case: left out, $needs is missing or disabled"
    skipped=$((skipped + 1))
    continue
  fi
  section input "$case" > "$folder/input.txt"
  section rules "$case" > "$folder/my.rules"
  section output "$case" > "$folder/expected.txt"
  arguments=("$folder/input.txt")
  passes=$(field passes "$case")
  [[ -z $passes ]] || arguments+=(--passes "$passes")
  [[ ! -s $folder/my.rules ]] || arguments+=(--rules "$folder/my.rules")
  run=$((run + 1))
  if ! "$ir" opt "${arguments[@]}" > "$folder/output.txt" 2> "$folder/error.txt"; then
    echo "$case: $(cat "$folder/error.txt")"
    failed=1
  elif ((update)); then
    { sed '/^--- output$/q' "$case"; cat "$folder/output.txt"; } > "$folder/case.ir"
    cp "$folder/case.ir" "$case"
  elif ! diff -u --label "$case: expected" --label "$case: output" \
      "$folder/expected.txt" "$folder/output.txt"; then
    failed=1
  fi
done
((failed)) || echo "passes: $run cases as expected, $skipped left out"
exit "$failed"
