#!/usr/bin/env bash
# `paddle plugin check`: devices of the engine and of plug-ins, options, random calls that are made
# smaller, values in the report, what has changed since an earlier report; plug-ins that change the
# state of the process or end it.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
plugin="$bin/paddle-plugin"
export PADDLE_INCLUDE="$PWD/include"
unset PADDLE_PLUGINS FAULT
root="$PWD"
cd "$folder" || exit 1
says() { grep -qF -- "$1" out || { fail "no '$1' in:"; head -c 800 out; }; }

# --- devices ---
ok "$plugin" check --device cpu --quick --group errors
says "cpu "
says "errors      6       0       1"
ok "$plugin" check --device mirror --quick --group collectives
says "collectives 6       0       0"
for net in mlp attention; do
  ok "$plugin" check --device mirror --quick --group training --only "mirror/$net" --report nets
  says "training    2       0       0"
done
python3 - << 'P' || fail "the report of networks"
import json
report = json.load(open("nets/report.json"))
assert report["plugin"] == "mirror" and report["sha256"] == "", report
for case in report["cases"]:
    assert case["message"].startswith("the loss goes from "), case
    assert ("a second run has the same bits" in case["message"]) == case["name"].endswith("/compiled"), case
    assert case["reproduce"].startswith("paddle plugin check --device mirror --quick --group training"), case
P
ok "$plugin" build "$root/plugins/relay/relay.c" -o relay.so
ok "$plugin" check relay.so --device relay --quick --group speed
says "relay/copies: to the device"
ok "$plugin" check --plugin relay.so --device relay --quick --group fuzz --report random
says "fuzz        1       0       0"
grep -q '"200 calls, ' random/report.json || fail "the number of calls"
expect 2 "unknown device 'nowhere', expected one of cpu, mirror" "$plugin" check --device nowhere
expect 2 "relay.so has no device 'cpu', only relay" "$plugin" check relay.so --device cpu
expect 2 "name the file of a plug-in, or a device" "$plugin" check
expect 2 "--option has no effect" "$plugin" check --device cpu --option a=1

# --- options ---
cat > window.cc << 'C'
#include <paddle/plugin/plugin.hpp>
static int64_t window;
static void run(const paddle::plugin::Run& r) { r.out<float>(0)[0] = r.in<float>(0)[0] * float(window); }
static bool one(const paddle::plugin::Request& r) { return r.operand(0).rank == 1 && r.operand(0).shape[0] == 1; }
PADDLE_PLUGIN(window, "1.0.0", plugin) {
  plugin.options("window: {type: integer, required: true, doc: a factor}",
                 [](const paddle::plugin::Options& o) { window = o.integer("window"); });
  plugin.operations("same: {signature: '(x:T) -> out', doc: x., body: x * 1, samples: ['x=f64[1]']}");
  plugin.kernel("window.same", "cpu", "float32", run, one);
}
C
ok "$plugin" build window.cc -o window.so
[[ "$(run_bounded "$plugin" check window.so --quick)" == 1 ]] || fail "a required option is not missing"
says "needs the option 'window'"
ok "$plugin" check window.so --quick --option window=1 --report before
[[ "$(run_bounded "$plugin" check window.so --quick --option window=3 --report after --compare before/report.json)" == 1 ]] || fail "a wrong factor passes"
says "level: loads, was complete"
says "operators window.same/eager: failed, was passed"
says "--option window=3"
expect 2 "--option: expected KEY=VALUE, found 'window'" "$plugin" check window.so --option window
ok "$plugin" check window.so --quick --option window=1 --compare before/report.json
says "nothing has changed"
python3 - << 'P' || fail "values of a failure"
import json
failed = [case for case in json.load(open("after/report.json"))["cases"] if case["status"] == "failed"]
assert failed
for case in failed:
    if case["group"] not in ("operators", "fuzz"): continue
    found, expected = float(case["actual"]), float(case["expected"])
    assert abs(found - 3 * expected) < 1e-4 * abs(expected) + 1e-6, case
    assert 0 < case["tolerance"] < 1, case
random = [case for case in failed if case["group"] == "fuzz"]
assert random and "paddle op run window.same" in random[0]["message"], failed
P
expect 2 "no such file" "$plugin" check window.so --compare nowhere.json
echo '{"cases": 3}' > wrong.json
expect 3 "wrong.json: is not a report of paddle plugin check" "$plugin" check window.so --compare wrong.json
head -c 100 before/report.json > cut.json
expect 3 "cut.json" "$plugin" check window.so --compare cut.json

# --- the state of the process ---
cat > state.cc << 'C'
#include <paddle/plugin/plugin.hpp>
#include <fenv.h>
#include <clocale>
#include <cstdlib>
#include <thread>
#include <unistd.h>
static void run(const paddle::plugin::Run& r) {
#ifdef KERNEL
  fesetround(FE_UPWARD);
#endif
#ifdef KERNEL_ENDS
  std::exit(0);
#endif
  for (int64_t i = 0; i < r.count(0); ++i) r.out<float>(0)[i] = r.in<float>(0)[i];
}
PADDLE_PLUGIN(state, "1.0.0", plugin) {
#ifdef ROUNDING
  fesetround(FE_UPWARD);
#endif
#ifdef LOCALE
  setlocale(LC_ALL, "C.UTF-8");
#endif
#ifdef FOLDER
  if (chdir("/") != 0) return;
#endif
#ifdef VARIABLE
  setenv("ACME", "1", 1);
#endif
#ifdef THREAD
  std::thread([] { while (true) sleep(100); }).detach();
#endif
#ifdef ENDS
  std::exit(0);
#endif
  plugin.operations("same: {signature: '(x:T) -> out', doc: x., body: x * 1, samples: ['x=f64[3]']}");
  plugin.kernel("state.same", "cpu", "float32", run);
}
C
variant() {
  { echo "#define $1"; cat state.cc; } > "$1.cc"
  ok "$plugin" build "$1.cc" -o "$1.so"
}
check_variant() {
  variant "$1"
  [[ "$(run_bounded "$plugin" check "$1.so" --quick)" == 1 ]] || fail "$1 passes"
  says "$2"
}
check_variant ROUNDING "it changes the rounding mode"
check_variant LOCALE "it changes the locale"
check_variant FOLDER "it changes the current folder"
check_variant VARIABLE "it changes the variables of the environment"
check_variant THREAD "it starts threads when it is loaded"
check_variant KERNEL "changes how the floating-point unit rounds"
check_variant ENDS "the plug-in state 1.0.0 ends the program: paddle_plugin_main"
check_variant KERNEL_ENDS "the plug-in state 1.0.0 ends the program: run of state.same"
# Programs put back what they can, and do not end as if all were well.
ok "$bin/paddle-op" run add "x=f32(1)" "y=f32(2)" --plugin ROUNDING.so
expect 70 "the plug-in state 1.0.0 ends the program: paddle_plugin_main" "$bin/paddle-op" run add "x=f32(1)" "y=f32(2)" \
  --plugin ENDS.so
expect 70 "ends the program: run of state.same" "$bin/paddle-op" bench state.same "x=f32[3]" --plugin KERNEL_ENDS.so
finish
