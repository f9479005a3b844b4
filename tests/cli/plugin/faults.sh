#!/usr/bin/env bash
# The faults of plugins/faulty: `paddle plugin check` finds each of them, and nothing in the plug-ins
# without their faults.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
plugin="$bin/paddle-plugin"
export PADDLE_INCLUDE="$PWD/include"
unset PADDLE_PLUGINS FAULT
faulty="$PWD/plugins/faulty"
python3 - "$folder/rows.fvecs" "$folder/lines.txt" << 'P'
import random, struct, sys
random.seed(1)
rows = [struct.pack("<i4f", 4, *(random.random() for _ in range(4))) for _ in range(300)]
open(sys.argv[1], "wb").write(b"".join(rows))
with open(sys.argv[2], "w") as lines:
    for _ in range(400): lines.write(" ".join(f"{random.random():.4f}" for _ in range(4)) + "\n")
P
keys_of() {
  if [[ "$1" == stream* ]]; then
    echo "--key path=$folder/lines.txt --key width=3 --key epoch_samples=150"
  else
    echo "--key path=$folder/rows.fvecs"
  fi
}

for source in device.c operators.c passes.cc reader.cc stream.cc collectives.c transport.cc table.cc compiler.cc; do
  ok "$plugin" build "$faulty/$source" -o "$folder/${source%.*}.so"
  [[ ! -s "$folder/error" ]] || fail "$source: the compiler says something"
  status="$(run_bounded "$plugin" check "$folder/${source%.*}.so" --quick $(keys_of "$source"))"
  [[ "$status" == 0 ]] || { fail "$source without a fault: status $status"; cat "$folder/out"; }
done

# check of a fault, for xargs: prints its name and a status.
check_fault() {
  read -r source fault group full <<< "$1"
  local quick=(--quick)
  [[ "$full" != full ]] || quick=()
  FAULT="$fault" timeout 100 "$plugin" check "$folder/$source.so" "${quick[@]}" --group "$group" \
    $(keys_of "$source") > "$folder/$fault.txt" 2> /dev/null
  # A plug-in that cannot be loaded fails the group `load`, whatever is asked for.
  [[ $? == 1 ]] && grep -q "^failed: $group " "$folder/$fault.txt" && return
  echo "not found: $source $fault in $group"
}
count=0
while read -r line; do
  [[ -n "$line" && "$line" != "#"* ]] || continue
  count=$((count + 1))
  missed="$(check_fault "$line")"
  [[ -z "$missed" ]] || { fail "$missed"; tail -n 5 "$folder/$(awk '{print $2}' <<< "$line").txt"; }
done < "$faulty/faults.txt"
((count >= 48)) || fail "$count faults"
echo "$((count - failures)) of $count faults found"
finish
