#!/usr/bin/env bash
# -v, -vv, -q and PADDLE_LOG choose what is printed besides results; optimizations can be left out
# by name; a crash names the operation that ran.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
digits=(configs/quickstart/digits.yaml "data.train={kind: digits, size: 256}" data.valid= train.steps=2)

# says FILE TEXT…: each text is in the file.
says() {
  local file="$1" text
  shift
  for text in "$@"; do grep -qE -- "$text" "$file" || { fail "'$text' is not printed:"; head -5 "$file"; }; done
}

ok "$train" "${digits[@]}" --output "$folder/run"
grep -q 'debug:\|trace:' "$folder/error" && fail "messages without -v"
cp "$folder/run/model/model.safetensors" "$folder/wanted"

ok "$train" "${digits[@]}" --output "$folder/v" -v
says "$folder/error" '^debug: opening the data: [0-9.]+ s' "^debug: '.*': pass fuse_elementwise: [0-9]+ operations to [0-9]+" \
  "^debug: '.*': plan of [0-9]+ instructions on cpu, .* of memory"
grep -q '^trace:' "$folder/error" && fail "-v prints operations"
cmp -s "$folder/v/model/model.safetensors" "$folder/wanted" || fail "-v changes the weights"

ok "$train" "${digits[@]}" --output "$folder/vv" -vv
says "$folder/error" '^trace: .*float32\[.*\] -> .*float32\[.*\] \(.*\)'
cmp -s "$folder/vv/model/model.safetensors" "$folder/wanted" || fail "-vv changes the weights"
ok "$train" "${digits[@]}" --eager --output "$folder/eager" -vv
says "$folder/error" '^trace: linear float32' '^trace: relu float32'

quiet 0 "$train" "${digits[@]}" --output "$folder/q" -q
[[ ! -s "$folder/out" ]] || fail "-q prints progress"
quiet 0 "$train" "${digits[@]}" --output "$folder/qj" -q --json
[[ "$(wc -l < "$folder/out")" == 1 ]] || fail "-q --json prints more than the object"
PADDLE_LOG=warning quiet 0 "$train" "${digits[@]}" --output "$folder/w"
[[ ! -s "$folder/out" ]] || fail "PADDLE_LOG=warning prints progress"
PADDLE_LOG=debug ok "$infer" "$folder/run" --data train -q
grep -q '^debug:' "$folder/error" && fail "-q does not take precedence over PADDLE_LOG"
PADDLE_LOG=debug ok "$infer" "$folder/run" --data train
says "$folder/error" '^debug: '
PADDLE_LOG=chatty expect 2 "PADDLE_LOG: 'chatty' is unknown, expected error, warning, info, debug or trace" "$infer" "$folder/run" --data train
expect 2 "--verbose and --quiet are mutually exclusive" "$infer" "$folder/run" --data train -v -q

# Each optimization can be left out, but for what no function runs without.
"$bin/paddle" ir opt --help > "$folder/help" || fail "help"
passes="$(grep '^Passes:' "$folder/help" | sed 's/^Passes: //; s/\.$//; s/, / /g')"
[[ "$passes" == *fuse_elementwise* ]] || fail "the help does not name passes: $passes"
ok "$infer" "$folder/run" --data train --output "$folder/wanted.npz"
for name in $passes layout fusion rewrites codegen winograd batch_tiling; do
  case "$name" in
    for_target | lower_qdq)
      expect 2 "'$name' cannot be left out" "$infer" "$folder/run" --data train --leave-out "$name" ;;
    *)
      ok "$infer" "$folder/run" --data train --leave-out "$name" --output "$folder/$name.npz"
      python3 - "$folder/wanted.npz" "$folder/$name.npz" <<'P' 2> "$folder/error" || fail "results without $name" ;;
import array, sys, zipfile
def values(path):
    with zipfile.ZipFile(path) as arrays:
        return {name: array.array("f", arrays.read(name)[arrays.read(name).index(b"\n") + 1:])
                for name in arrays.namelist() if b"'<f4'" in arrays.read(name)[:128]}
wanted, found = (values(path) for path in sys.argv[1:])
assert wanted and wanted.keys() == found.keys()
for name in wanted:
    for a, b in zip(wanted[name], found[name], strict=True):
        assert abs(a - b) <= 1e-6 + 1e-5 * abs(a), (name, a, b)
P
  esac
done
expect 2 "'fuse_elementwize' cannot be left out of the compilation (did you mean 'fuse_elementwise'?)" \
  "$infer" "$folder/run" --data train --leave-out fuse_elementwize
ok "$train" "${digits[@]}" "compile.leave_out=[fuse_elementwise, cse]" --output "$folder/left" -v
grep -q "'train': pass fuse_elementwise\|'train': pass cse" "$folder/error" && fail "compile.leave_out does not leave passes out"
expect 3 "compile.leave_out: 'csee' cannot be left out" "$train" "${digits[@]}" "compile.leave_out=[csee]" --output "$folder/bad"

# A signal that ends the process.
"$train" "${digits[@]}" train.steps=100000000 train.epochs=100000000 --output "$folder/crash" > "$folder/out" 2> "$folder/error" &
process=$!
for _ in $(seq 100); do
  grep -q '^train ' "$folder/out" && break
  sleep 0.1
done
kill -SEGV "$process"
status=0
wait "$process" 2> /dev/null || status=$?
[[ "$status" == 139 ]] || fail "the crash ended with $status"
says "$folder/error" '^internal error: segmentation fault'
finish
