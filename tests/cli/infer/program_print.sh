#!/usr/bin/env bash
# Programs of PaddlePaddle that print and check values, and the shapes of outputs that `show` states.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
data="$PWD/tests/paddle_program/data"
most_lines=5

ok "$infer" "$data/shown_pir.json" --input "$data/shown_pir.npz"
[[ "$(sed -e 's/ \[.*//' "$folder/error")" == "print: turn: float32[2, 3]
print: turn: float32[2, 3]
print_1: end: float32[2, 3]" ]] || fail "the lines of the program in PIR"
grep -q 'end: float32\[2, 3\] \[5.7170444, -4.681658, …\]' "$folder/error" || fail "the first two elements of the last line"
ok "$infer" "$data/shown_program.pdmodel" --input "$data/shown_program.npz"
[[ "$(grep -c 'turn: float32' "$folder/error")" == 2 ]] || fail "the turns of the program in protobuf"

python3 - "$folder/large.npz" << 'P'
import struct, sys, zipfile
header = str({"descr": "<f4", "fortran_order": False, "shape": (1, 3)}).encode()
header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("in0.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<3f", 1, 1, 30))
P
expect 4 "assert: the condition does not hold (assert)" "$infer" "$data/shown_pir.json" --input "$folder/large.npz"

for file in shown_pir.json shown_program.pdmodel; do
  ok "$bin/paddle-show" "$data/$file"
  grep -q ': float32\[batch, 3\]$' <(sed -n '/^outputs:/,/^operators:/p' "$folder/out") || fail "$file: the shape of its output"
done
ok "$bin/paddle-show" "$data/shown_pir.json" --json
python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["outputs"] != {"fetch_name_0": "float32[batch, 3]"})' "$folder/out" ||
  fail "the shape of its output as JSON"
finish
