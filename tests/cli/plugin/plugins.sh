#!/usr/bin/env bash
# Plug-ins from file to ONNX: one of YAML and one with a kernel are built, checked, trained with,
# saved, loaded, exported; and files that cannot be loaded end in one line.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
plugin="$bin/paddle-plugin"
op="$bin/paddle-op"
export PADDLE_INCLUDE="$PWD/include"
unset PADDLE_PLUGINS
cp -r plugins "$folder/plugins"
rm -f "$folder"/plugins/*/*.so
yaml="$folder/plugins/gated_norm/gated_norm.plugin.yaml"
so="$folder/plugins/softsign_power/softsign_power.so"

says() { grep -qF -- "$1" "$folder/out" || { fail "no '$1' in:"; head -c 800 "$folder/out"; }; }

# Build: less than 3 seconds, and one exported symbol.
before=$(date +%s%N)
ok "$plugin" build "$folder/plugins/softsign_power"
(($(date +%s%N) - before < 3000000000)) || echo "note: the build took more than 3 s"
says "$so"
ok "$plugin" info "$so"
minor="$(grep -oP "ABI_MINOR \K\d+" include/paddle/plugin/abi.h)"
says "softsign_power 1.0.0, a shared object for version 1.$minor"
says "exports: paddle_plugin_main"
ok "$plugin" info "$yaml"
says "operations: gated_norm.gated_norm"
ok "$plugin" list --plugin "$yaml" --plugin "$so"
says "gated_norm"
says "1 operations, 1 kernels"
ok "$plugin" list
says "no plug-ins"
for file in "$yaml" "$so"; do ok "$plugin" check "$file" --report "$folder/report"; done
python3 - "$folder/report/report.json" <<'P' || fail "the report"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["plugin"] == "softsign_power" and report["failed"] == 0, report
groups = {case["group"] for case in report["cases"]}
assert groups == {"load", "operators", "fuzz", "gradients", "training", "traits", "repeat", "speed"}, groups
assert all(set(case) >= {"group", "name", "status", "reproduce"} for case in report["cases"])
P
ok "$bin/paddle-op" show softsign_power.softsign_power --plugin "$so"
says "x over a power"
ok "$bin/paddle-op" run softsign_power.softsign_power "x=f32(3,-1,0)" power=2 --plugin "$so"
says "0.1875"

# A device of a plug-in, with a kernel of its own and others on the host.
device="$bin/../plugin_clients/device.so"
if [[ -e "$device" ]]; then
  ok "$plugin" list --plugin "$device"
  says "0 operations, 1 kernels, devices shadow"
  ok "$bin/paddle-op" run add "x=f32(1,2)" "y=f32(3,4)" --plugin "$device" --device shadow
  says "6"
  ok "$train" configs/bench/lenet.yaml data.train.size=128 train.steps=2 --plugin "$device" --device shadow --output "$folder/shadow"
  grep -q "operations that ran on the host: .*conv2d" "$folder/error" || fail "no word of the host"
  expect 6 "the device shadow has no kernel, and running it on the host is rejected" "$train" configs/bench/lenet.yaml \
    data.train.size=128 train.steps=2 --plugin "$device" --device shadow --no-host-fallback --output "$folder/shadow-only"
  expect 2 "there is no device 'shadow:1'" "$bin/paddle-op" run add "x=f32(1)" "y=f32(1)" --plugin "$device" --device shadow:1
  expect 2 "unknown device 'shadow'" "$bin/paddle-op" run add "x=f32(1)" "y=f32(1)" --device shadow
fi

# Train, save, load, export.
for name in gated_norm softsign_power; do
  file="$yaml"
  [[ $name == gated_norm ]] || file="$so"
  run="$folder/runs/$name"
  ok "$train" "$folder/plugins/$name/digits.yaml" --output "$run" --threads 2 train.epochs=1
  head -1 "$run/model/module.txt" | grep -qx "plugin $name 1.0.0" || fail "$name: module.txt names no plug-in"
  grep -q "$name >= 1.0.0" "$run/model/config.yaml" || fail "$name: config.yaml names no plug-in"
  ! grep -rqF "/$(basename "$file")" "$run/model" || fail "$name: the saved model names a file"
  python3 -c 'import json, sys; [p] = json.load(open(sys.argv[1]))["plugins"]; assert p["name"] == sys.argv[2] and len(p["sha256"]) == 64' \
    "$run/run.json" "$name" || fail "$name: run.json"
  wanted="module.txt:1:"
  expect 5 "$wanted" "$infer" "$run" --data "$folder/plugins/$name/digits.yaml:valid" -o "$folder/$name.npz"
  grep -qF "needs the plug-in $name ≥ 1.0.0; name its file with --plugin or PADDLE_PLUGINS" "$folder/error" ||
    fail "$name: the message"
  ok "$infer" "$run" --plugin "$file" --data "$folder/plugins/$name/digits.yaml:valid" -o "$folder/$name.npz"
  PADDLE_PLUGINS="$file" ok "$bin/paddle-eval" "$run"
  ok "$bin/paddle-show" "$run" --plugin "$file"
  ok "$bin/paddle-export" "$run" --plugin "$file" -o "$folder/$name.onnx"
  ! grep -aqF "$name.$name" "$folder/$name.onnx" || fail "$name: the ONNX file needs the plug-in"
  ok "$infer" "$folder/$name.onnx" --data "$folder/plugins/$name/digits.yaml:valid" -o "$folder/onnx.npz"
done

# Without the plug-in a model says what is missing.
printf 'inputs: {x: "float32[n, 4]"}\nmodel: "return gated_norm.gated_norm(x, x)"\n' > "$folder/model.yaml"
expect 3 "unknown operation 'gated_norm.gated_norm' (is the plug-in gated_norm loaded?)" \
  "$bin/paddle-show" "$folder/model.yaml"
ok "$bin/paddle-show" "$folder/model.yaml" --plugin "$yaml"

# Files that cannot be loaded: one line each.
expect 2 "none.so: no such plug-in file" "$plugin" list --plugin "$folder/none.so"
echo hello > "$folder/text.so"
expect 6 "text.so: is not a shared object (ELF) or YAML file" "$plugin" list --plugin "$folder/text.so"
head -c 9000 "$so" > "$folder/cut.so"
expect 6 "cut.so: the file is truncated" "$plugin" list --plugin "$folder/cut.so"
cp "$so" "$folder/hash.so"
printf 'extends: %s\nplugins: [{path: hash.so, sha256: "00000000"}]\n' "$folder/plugins/softsign_power/digits.yaml" > "$folder/hash.yaml"
expect 6 "has the sha256" "$train" "$folder/hash.yaml" --dry-run
printf 'extends: %s\nplugins: [absent.so]\n' "$folder/plugins/softsign_power/digits.yaml" > "$folder/absent.yaml"
expect 3 "absent.yaml:2:11: plugins: no such file" "$train" "$folder/absent.yaml" --dry-run
cp "$yaml" "$folder/copy.plugin.yaml"
expect 6 "copy.plugin.yaml: the plug-in gated_norm is loaded already" "$plugin" list --plugin "$yaml" --plugin "$folder/copy.plugin.yaml"
expect 2 "expected a source" "$plugin" build "$yaml"
echo "int" > "$folder/bad.cc"
most_lines=20
expect 1 "bad.cc: the compiler failed with status 1" "$plugin" build "$folder/bad.cc"
echo 'extern "C" __attribute__((visibility("default"))) int other() { return 0; }' > "$folder/plain.cc"
expect 1 "plain.so: is not a plug-in: it has no note (PADDLE_PLUGIN_NOTE)" "$plugin" build "$folder/plain.cc"
[[ ! -e "$folder/plain.so" ]] || fail "a bad plug-in is left"
most_lines=4

# A plug-in in C, in variants: each is built from one source and loaded.
cat > "$folder/variants.c" <<'C'
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "paddle/plugin/plugin.h"
#ifndef NAME
#define NAME "variants"
#endif
#ifndef SCHEMA
#define SCHEMA "twice: {signature: (x:T) -> out, doc: Two., dtypes: {x: float}, body: x * 2.0}"
#endif
/* As a later version of the interface would have them: longer. */
struct long_kernel { paddle_kernel now; void* later[4]; };
static int64_t count_of(const paddle_view* v) {
  int64_t n = 1;
  for (int i = 0; i < v->rank; ++i) n *= v->shape[i];
  return n;
}
static paddle_status run(const void* state, const paddle_run* r) {
  const int64_t n = *(const int64_t*)state;
  const float* x = (const float*)r->operands[0];
  float* out = (float*)r->results[0];
#ifdef CRASH
  *(volatile int*)8 = 1;
#endif
#ifdef TAIL
  for (int64_t i = 0; i + 4 <= n; ++i) out[i] = x[i] * 2;
#else
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * 2;
#endif
#ifdef BEYOND
  out[n] = 0;
#endif
#ifdef EXIT
  exit(0);
#endif
  return PADDLE_OK;
}
static const paddle_host* host;
static paddle_status prepare(paddle_call* call, const paddle_request* q, paddle_instance* i) {
#ifdef FAIL
  return host->fail(call, PADDLE_DEVICE, "no such device");
#endif
  (void)call;
  int64_t* n = (int64_t*)malloc(sizeof *n);
  *n = count_of(q->operands[0]);
  i->state = n;
  i->run = run;
  i->destroy = free;
  return PADDLE_OK;
}
static const paddle_operation operation = {
  .struct_size =
#ifdef SHORT
  4,
#else
  sizeof operation,
#endif
  .schema = SCHEMA};
static const struct long_kernel kernel = {{
#ifdef LONG
  sizeof(struct long_kernel),
#else
  sizeof(paddle_kernel),
#endif
#ifdef UNKNOWN
  "variants.thrice",
#else
  "variants.twice",
#endif
  "cpu", "float32", prepare}, {0}};
static const paddle_operation* operations[] = {&operation};
static const paddle_kernel* kernels[] = {&kernel.now};
#ifdef MAJOR
#undef PADDLE_PLUGIN_ABI_MAJOR
#define PADDLE_PLUGIN_ABI_MAJOR 2
#endif
PADDLE_PLUGIN_NOTE(NAME, "1.0.0");
#ifdef NOENTRY
PADDLE_PLUGIN_EXPORT void other(void) {}
#define paddle_plugin_main static_main
static
#else
PADDLE_PLUGIN_EXPORT
#endif
paddle_status paddle_plugin_main(const paddle_host* h, paddle_plugin* p) {
  host = h;
#ifdef OLD
  /* A plug-in of an interface whose struct ended here. */
  p->struct_size = offsetof(paddle_plugin, start);
  p->start = (paddle_status(*)(const paddle_host*, paddle_call*))8;
#endif
#ifdef MINOR
  p->needs_minor = 99;
#endif
  p->name = NAME;
  p->version = "1.0.0";
  p->operation_count = 1;
  p->operations = operations;
  p->kernel_count = 1;
  p->kernels = kernels;
  return PADDLE_OK;
}
C
variant() {
  local name="$1"
  shift
  gcc -std=c11 -Wall -Wextra -Wno-unused -O1 -shared -fPIC -fvisibility=hidden -I include "$@" "$folder/variants.c" -o "$folder/$name.so" ||
    fail "$name does not compile"
}
twice=("$bin/paddle-op" run variants.twice "x=f32(1,2,3)" --compiled --plugin)
for good in PLAIN LONG OLD; do
  variant $good -D$good
  ok "${twice[@]}" "$folder/$good.so"
  says "[2, 4, 6]"
done
rejected() {
  variant "$1" "-D$1"
  expect "$2" "$1.so: $3" "$plugin" list --plugin "$folder/$1.so"
  [[ $(wc -l < "$folder/error") == 1 ]] || fail "$1: more than one line"
}
rejected SHORT 6 "operation 0: its struct_size 4 is too small"
rejected UNKNOWN 6 "kernel 0: unknown operation 'variants.thrice' (did you mean 'variants.twice'?)"
rejected MAJOR 6 "was built for version 2.$minor of the plug-in interface, this program has 1.$minor"
rejected MINOR 6 "needs version 1.99 of the plug-in interface, this program has 1.$minor"
rejected NOENTRY 6 "does not export paddle_plugin_main"
variant SCHEMA '-DSCHEMA="twice: {signature: (x:T) -> out, doc: Two., boody: x}"'
expect 3 "SCHEMA.so:operations:1: twice: unknown key 'boody'" "$plugin" list --plugin "$folder/SCHEMA.so"
variant NAME '-DNAME="comm"'
expect 6 "NAME.so: the name 'comm' is reserved" "$plugin" list --plugin "$folder/NAME.so"
variant FAIL -DFAIL
expect 6 "variants.twice: no such device" "${twice[@]}" "$folder/FAIL.so"

# A crash in a tool names the plug-in; in the check it is one failed case.
variant CRASH -DCRASH
expect 139 "error: signal 11 inside plug-in variants 1.0.0: run of variants.twice" "${twice[@]}" "$folder/CRASH.so"
most_lines=20
finds() {
  variant "$1" "-D$1"
  [[ "$(run_bounded "$plugin" check "$folder/$1.so" --quick)" == 1 ]] || fail "$1 is not found"
  says "$2"
}
finds CRASH "crashed"
finds TAIL "differs from the body"
finds BEYOND "bytes beyond the end of result 0"
finds EXIT "failed: operators variants.twice/eager"

# New plug-ins build and pass the check as they are written.
cd "$folder" || exit 1
export PADDLE_PLUGIN_LIST="$folder/list/plugins.json"
ok "$plugin" new operator fresh
ok "$plugin" check fresh.plugin.yaml --quick
ok "$plugin" new kernel quick
ok "$plugin" build quick.cc -o quick.so
ok "$plugin" check quick.so --quick
most_lines=1
expect 2 "fresh.plugin.yaml: already exists" "$plugin" new operator fresh
expect 2 "'Fresh' is not a name" "$plugin" new operator Fresh

# Names of the user's list stand for files; a file that has changed is not loaded.
ok "$plugin" add fresh fresh.plugin.yaml
ok "$op" run fresh.scaled_tanh "x=f32(1,2)" --plugin fresh
says "0.7615942"
ok "$plugin" list
says "in the list"
expect 2 "quick.so: is the plug-in 'quick', not 'fresh'" "$plugin" add fresh quick.so
echo "# more" >> fresh.plugin.yaml
expect 6 "has the sha256" "$op" run fresh.scaled_tanh "x=f32(1,2)" --plugin fresh
expect 2 "has no plug-in 'fres' (did you mean 'fresh'?)" "$plugin" remove fres
ok "$plugin" remove fresh
expect 2 "fresh: no such plug-in file" "$op" run fresh.scaled_tanh "x=f32(1,2)" --plugin fresh
echo "[" > list/plugins.json
expect 3 "is not a list of plug-ins; delete the file to start again" "$plugin" list
finish
