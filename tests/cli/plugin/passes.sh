#!/usr/bin/env bash
# Passes and rewrite rules as plug-ins: built, checked, trained with; texts of passes that are no
# modules are rejected with the pass and the line.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
plugin="$bin/paddle-plugin"
export PADDLE_INCLUDE="$PWD/include"
unset PADDLE_PLUGINS
cp -r plugins "$folder/plugins"
rm -f "$folder"/plugins/*/*.so
ends() { # status, command: whatever it says
  local wanted=$1 status
  shift
  status="$(run_bounded "$@")"
  [[ "$status" == "$wanted" ]] || fail "$* gave $status, expected $wanted:"
}
says() { grep -qF -- "$1" "$folder/out" || { fail "no '$1' in:"; head -c 800 "$folder/out"; }; }

# Rules: each is compared with its pattern, and a wrong one is found.
rules="$folder/plugins/mish_rules/mish_rules.plugin.yaml"
ok "$plugin" check "$rules"
says "rules       2       0       0"
ok "$plugin" info "$rules"
says "rewrite rules"
ok "$plugin" list --plugin "$rules"
says "2 rewrite rules"
cat > "$folder/wrong.plugin.yaml" <<'Y'
plugin: {name: wrong, version: 1.0.0, abi: 1}
rules: |
  right: multiply(x, x) -> square(x)
  bad: abs(x) -> relu(x)
  zero: divide(x, x) -> sign(abs(x))
  never: reshape(x, shape=:s) -> transpose(x, perm=:s)
    where :s == last(x)
Y
ends 1 "$plugin" check "$folder/wrong.plugin.yaml"
says "failed: rules wrong.bad: float32, sizes [3, 8]: element"
says "--group rules --only wrong.bad"
says "rules       "
says "skipped: rules wrong.never: no call of its pattern was found"
! grep -q "failed: rules wrong.right" "$folder/out" || fail "a right rule failed"
printf 'plugin: {name: broken, version: 1.0.0, abi: 1}\nrules: |\n  a: abs(x) -> relux(x)\n' > "$folder/broken.plugin.yaml"
expect 3 "broken.plugin.yaml:3: there is no operation 'relux'" "$plugin" list --plugin "$folder/broken.plugin.yaml"
printf 'plugin: {name: nothing, version: 1.0.0, abi: 1}\n' > "$folder/nothing.plugin.yaml"
expect 3 "nothing.plugin.yaml: has no section with operations, rules or other parts" "$plugin" list --plugin "$folder/nothing.plugin.yaml"

# A pass: built, checked, seen in the stages.
so="$folder/plugins/fold_scales/fold_scales.so"
ok "$plugin" build "$folder/plugins/fold_scales"
ok "$plugin" check "$so" --quick
says "passes      4       0       0"
ok "$train" "$folder/plugins/fold_scales/digits.yaml" --output "$folder/folded" train.epochs=1 --dump-ir "$folder/stages"
ls "$folder/stages" | grep -q "fold_scales.fold_scales.txt" || fail "no stage of the pass"
grep -q "0.00390625" "$folder"/stages/*fold_scales.fold_scales.txt || fail "the scales are not folded"
ok "$train" "$folder/plugins/fold_scales/digits.yaml" --output "$folder/unfolded" train.epochs=1 "compile.passes=[]" \
  --dump-ir "$folder/other"
! ls "$folder/other" | grep -q "fold_scales.fold_scales" || fail "the pass was not asked for"
expect 3 "compile.passes: there is no pass 'fold_scales.fold'" "$train" "$folder/plugins/fold_scales/digits.yaml" \
  "compile.passes=[fold_scales.fold]" --dry-run

# Passes that give something else.
cat > "$folder/bad_pass.cc" <<'C'
#include <paddle/plugin/plugin.hpp>
#include <cstdlib>
static std::optional<std::string> bad(std::string_view module) {
  std::string text(module);
#if defined(NONSENSE)
  return "nonsense";
#elif defined(TYPE)
  const size_t at = text.find(" : float32", text.find(" = relu("));
  if (at == std::string::npos) return std::nullopt;
  return text.replace(at, 10, " : float64");
#elif defined(VALUE)
  const size_t at = text.find(" = relu(");
  if (at == std::string::npos) return std::nullopt;
  return text.replace(at, 8, " = tanh(");
#elif defined(LONG)
  return text + std::string(10 << 20, ' ') + "x";
#elif defined(FAILS)
  throw paddle::plugin::Failure(PADDLE_DATA, "not today");
#else
  std::abort();
#endif
}
PADDLE_PLUGIN(bad_pass, "1.0.0", p) {
  p.pass("bad", PADDLE_STAGE_CANONICALIZE, PADDLE_PASS_KEEPS_BITS | PADDLE_PASS_TRAINING, bad);
}
C
variant() {
  local upper=$1
  mkdir -p "$folder/$upper"
  { echo "#define $upper"; cat "$folder/bad_pass.cc"; } > "$folder/$upper/bad_pass.cc"
  ok "$plugin" build "$folder/$upper/bad_pass.cc" -o "$folder/$upper/bad_pass.so"
}
model="$folder/model.yaml"
printf 'inputs: {x: "float32[n, 4]"}\nmodel: "return relu(x)"\n' > "$model"
printf '1,2,3,4\n' > "$folder/rows.csv"
run_with() { # status, message, variant
  expect "$1" "$2" "$infer" "$model" --input "$folder/x.npz" -o "$folder/y.npz" --overwrite --plugin "$folder/$3/bad_pass.so" \
    --dump-ir "$folder/dump-$3"
}
python3 - "$folder/x.npz" <<'P'
import struct, sys, zipfile
data = struct.pack("<8f", *range(8))
header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }"
header += b" " * (117 - len(header)) + b"\n"
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)
P
for each in NONSENSE TYPE VALUE LONG FAILS CRASH; do variant $each; done
run_with 5 "bad_pass.bad:1:1: the pass bad_pass.bad of bad_pass 1.0.0 gave no valid module" NONSENSE
grep -qx nonsense "$folder/dump-NONSENSE/bad_pass.bad.invalid.txt" || fail "the text is not kept"
run_with 5 "the pass bad_pass.bad of bad_pass 1.0.0 gave no valid module: function" TYPE
grep -qE "bad_pass.bad:[0-9]+:[0-9]+: " "$folder/error" || fail "no line of the wrong type"
run_with 5 "expected the end of the file" LONG
run_with 4 "the pass bad_pass.bad: not today" FAILS
run_with 134 "signal 6 inside plug-in bad_pass 1.0.0" CRASH
ok "$infer" "$model" --input "$folder/x.npz" -o "$folder/y.npz" --overwrite --plugin "$folder/VALUE/bad_pass.so"
ends 1 "$plugin" check "$folder/VALUE/bad_pass.so" --quick --group passes
says "failed: passes bad_pass.bad/modules: module"
ends 1 "$plugin" check "$folder/CRASH/bad_pass.so" --quick --group passes
says "crashed"

# The files that `new` writes build and pass their check.
for kind in pass rules; do
  rm -rf "${folder:?}/new"
  mkdir "$folder/new"
  (cd "$folder/new" && "$plugin" new $kind fresh > out) || fail "new $kind"
  file="$folder/new/fresh.plugin.yaml"
  if [[ $kind == pass ]]; then
    ok "$plugin" build "$folder/new/fresh.cc" -o "$folder/new/fresh.so"
    file="$folder/new/fresh.so"
  fi
  ok "$plugin" check "$file" --quick
done
finish
