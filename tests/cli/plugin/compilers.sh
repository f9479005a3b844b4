#!/usr/bin/env bash
# Compilers of graphs as plug-ins: built, checked, trained with; one that fails or crashes is named.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
plugin="$bin/paddle-plugin"
export PADDLE_INCLUDE="$PWD/include"
unset PADDLE_PLUGINS
config="$PWD/plugins/fold_scales/digits.yaml"
says() { grep -qF -- "$1" "$folder/out" || { fail "no '$1' in:"; head -c 800 "$folder/out"; }; }
sed -e '/^plugins:/d' -e '/passes:/d' "$config" > "$folder/digits.yaml"
cd "$folder" || exit 1

ok "$plugin" new compiler fresh
says "paddle plugin check fresh.so --quick"
ok "$plugin" build fresh.cc -o fresh.so
ok "$plugin" check fresh.so --quick
says "compilers   7       0       1"
ok "$plugin" list --plugin fresh.so
says "compilers fresh.loops"

# The losses of a run are close to those without the compiler.
ok "$train" digits.yaml --output with --plugin fresh.so train.epochs=1 --dump-ir stages
grep -q "plugin.region" stages/*claim_regions.txt || fail "no region is claimed"
ok "$train" digits.yaml --output without --plugin fresh.so train.epochs=1 compile.compiler=none --dump-ir other
! ls other | grep -q claim_regions || fail "the compiler was not asked for"
ok "$bin/paddle-ir" opt "$(ls stages/*claim_regions.txt | head -n 1)" --passes dce
expect 3 "compile.compiler: there is no compiler 'fresh.lops' (did you mean 'fresh.loops'?)" \
  "$train" digits.yaml --plugin fresh.so compile.compiler=fresh.lops --dry-run
expect 3 "no plug-in with a compiler is loaded" "$train" digits.yaml compile.compiler=fresh.loops --dry-run

# Compilers that fail, and that end the process.
cat > bad_loops.cc << 'C'
#include <paddle/plugin/plugin.hpp>
#include <cstdlib>
struct Loops {
  static bool supports(std::string_view operation, const paddle::plugin::Request&) { return operation == "relu"; }
  explicit Loops(const paddle::plugin::Region&) {
#ifdef FAILS
    throw paddle::plugin::Failure(PADDLE_DEVICE, "not today");
#endif
  }
  void run(const paddle::plugin::Run&) const { std::abort(); }
};
PADDLE_PLUGIN(bad_loops, "1.0.0", p) { p.compiler<Loops>("loops", "", PADDLE_COMPILER_TRAINING); }
C
ok "$plugin" build bad_loops.cc -o crash.so
{ echo "#define FAILS"; cat bad_loops.cc; } > fails.cc
ok "$plugin" build fails.cc -o fails.so
printf 'inputs: {x: "float32[n, 4]"}\nmodel: "return relu(x)"\n' > model.yaml
python3 - << 'P'
import struct, zipfile
header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }"
header += b" " * (117 - len(header)) + b"\n"
with zipfile.ZipFile("x.npz", "w") as z:
    z.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<8f", *range(8)))
P
ok "$infer" model.yaml --input x.npz -o y.npz --plugin fails.so
grep -q "bad_loops.loops does not compile a region, which runs on the engine's kernels: .*not today" error || {
  fail "no warning"
  cat error
}
expect 134 "signal 6 inside plug-in bad_loops 1.0.0: run of bad_loops.loops" "$infer" model.yaml --input x.npz -o z.npz --plugin crash.so
status="$(run_bounded "$plugin" check crash.so --quick --group compilers)"
[[ "$status" == 1 ]] || fail "check of a crash: status $status"
finish
