#!/usr/bin/env bash
# The same programs run without AVX-512 and without AVX2: operations against their tables,
# trainings in every precision, and predictions, with the dispatch of our kernels and of oneDNN
# limited by PADDLE_MAX_ISA.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"

head -c 30000 /dev/urandom | base64 | tr -d '=\n' | fold -w 60 > "$folder/text.txt"
gpt=(configs/text/char_gpt.yaml "data.train.path=$folder/text.txt" "data.valid.path=$folder/text.txt"
  'params={layers: 1, heads: 2, width: 64}' data.batch_size=4)
images=(configs/quickstart/digits.yaml 'data.train.range=[0,320]' 'data.valid.range=[20000,20040]')
common=(train.steps=6 train.epochs=1 train.log_every=1 train.checkpoint_every=never train.evaluate_every=never)

run_all() { # NAME
  local name="$1" precision level
  for precision in float32 bf16 f16; do
    for level in O1 O2; do
      [[ $precision$level == float32O2 ]] && continue
      "$bin/paddle-train" "${gpt[@]}" "${common[@]}" "precision=$precision" "amp.level=$level" \
        --output "$folder/$name.gpt.$precision.$level" > "$folder/log" 2>&1 || { fail "$name gpt $precision $level"; cat "$folder/log"; }
      "$bin/paddle-train" "${images[@]}" "${common[@]}" "precision=$precision" "amp.level=$level" \
        --output "$folder/$name.images.$precision.$level" > "$folder/log" 2>&1 || { fail "$name images $precision $level"; cat "$folder/log"; }
    done
  done
  "$bin/paddle-infer" "$folder/any.images.float32.O1/model" --data valid --quiet --output "$folder/$name.csv" > "$folder/log" 2>&1 ||
    { fail "$name infer"; cat "$folder/log"; }
}

compare() { # NAME: losses of all runs against those without a limit
  python3 - "$folder" "$1" << 'PY' || fail "$1: losses differ"
import csv, glob, json, os, sys
folder, name = sys.argv[1:]
bad = 0
def numbers(name):  # of the predictions, text left out
    out = []
    for row in csv.reader(open(f"{folder}/{name}.csv")):
        for cell in row:
            try: out.append(float(cell))
            except ValueError: pass
    return out
a, b = numbers("any"), numbers(name)
if len(a) != len(b) or any(abs(x - y) > 1e-4 * (1 + abs(x)) for x, y in zip(a, b)): print("predictions differ"); bad = 1
for path in sorted(glob.glob(f"{folder}/any.*/metrics.jsonl")):
    run = os.path.basename(os.path.dirname(path))[4:]
    a, b = ([json.loads(x)["loss"] for x in open(p) if '"train"' in x]
            for p in (path, f"{folder}/{name}.{run}/metrics.jsonl"))
    worst = max(abs(x - y) / abs(x) for x, y in zip(a, b)) if len(a) == len(b) > 0 else float("inf")
    limit = 2e-4 if "float32" in run else 2e-2
    if not worst <= limit: print(f"{run}: {worst:.1e}"); bad = 1
sys.exit(bad)
PY
}

tables=(unary binary reduction products conv volume pool norm loss recurrent scan sorting indexing)
run_all any
for set in avx2 sse4; do
  export PADDLE_MAX_ISA="$set"
  for table in "${tables[@]}"; do
    "$bin/paddle-op" check "tests/op/cases/$table.jsonl" > "$folder/log" 2>&1 || { fail "$set $table"; tail -20 "$folder/log"; }
  done
  # The limit is in force: no kernel says that it is made of newer instructions.
  "$bin/paddle-op" bench matmul 'x=f32[256,256]' 'y=f32[256,256]' > "$folder/log" 2>&1 || fail "$set bench"
  grep -q avx512 "$folder/log" && { fail "$set: AVX-512 was used"; cat "$folder/log"; }
  [[ $set == sse4 ]] && grep -q avx2 "$folder/log" && { fail "sse4: AVX2 was used"; cat "$folder/log"; }
  run_all "$set"
  compare "$set"
  unset PADDLE_MAX_ISA
done

status=0
PADDLE_MAX_ISA=avx3 "$bin/paddle-op" bench relu 'x=f32[4]' > "$folder/log" 2>&1 || status=$?
[[ $status == 2 ]] && grep -q 'PADDLE_MAX_ISA: expected sse4, avx2 or avx512' "$folder/log" || fail "an unknown instruction set"

finish
