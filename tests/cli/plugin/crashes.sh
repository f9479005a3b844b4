#!/usr/bin/env bash
# Plug-ins that crash: `check` survives them and says where, and a program that they end names the
# plug-in, the function, the operation and its place in the model.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
plugin="$bin/paddle-plugin"
export PADDLE_INCLUDE="$PWD/include"
unset PADDLE_PLUGINS CRASH
relay="$PWD/plugins/relay/relay.c"
cd "$folder" || exit 1

# One plug-in with an operation, a pass and a reader. CRASH="PLACE KIND" says where it ends, and how.
cat > crash.cc <<'C'
#include <paddle/plugin/plugin.hpp>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>

static int overflow(volatile char* before) {
  volatile char block[4096];
  block[0] = before ? before[0] : 0;
  return overflow(block) + block[0];
}

static void crash(const std::string& place) {
  const char* const wanted = std::getenv("CRASH");
  if (!wanted) return;
  const std::string text = wanted;
  if (text.substr(0, text.find(' ')) != place) return;
  const std::string kind = text.substr(text.find(' ') + 1);
  if (kind == "segv") *reinterpret_cast<volatile int*>(8) = 1;
  if (kind == "fpe") std::raise(SIGFPE);
  if (kind == "bus") std::raise(SIGBUS);
  if (kind == "trap") __builtin_trap();
  if (kind == "abort") std::abort();
  if (kind == "stack") overflow(nullptr);
  if (kind == "int") throw 42;
  if (kind == "exception") throw std::runtime_error("thrown by it");
  if (kind == "exit") std::exit(0);
  if (kind == "hang")
    for (volatile int i = 0;; i = i + 1) {
    }
}

[[maybe_unused]] static const int loaded = (crash("constructor"), 0);

struct Own {
  ~Own() { crash("destroy"); }
};
static paddle_status run(const void*, const paddle_run* r) {
  crash("run");
  paddle::plugin::host()->parallel_for(
      r->call, 100000, 10, [](void*, int64_t, int64_t) { crash("parallel"); }, nullptr);
  static_cast<float*>(r->results[0])[0] = 2 * static_cast<const float*>(r->operands[0])[0];
  return PADDLE_OK;
}
static paddle_status prepare(paddle_call*, const paddle_request* request, paddle_instance* instance) {
  crash("prepare");
  if (request->operands[0]->rank != 1 || request->operands[0]->shape[0] != 1) return PADDLE_DECLINED;
  instance->state = new Own;
  instance->destroy = [](void* state) { delete static_cast<Own*>(state); };
  instance->run = run;
  return PADDLE_OK;
}
static std::optional<std::string> pass(std::string_view) {
  crash("pass");
  return std::nullopt;
}
struct Rows {
  explicit Rows(const paddle::plugin::Options&) { crash("open"); }
  std::string describe() const { return "x: float32[2]"; }
  int64_t size() const {
    crash("size");
    return 20;
  }
  void read(int64_t index, const paddle::plugin::Sample& sample) const {
    crash("read");
    float* const x = sample.field<float>(0, {2});
    x[0] = x[1] = static_cast<float>(index);
  }
  std::string location(int64_t index) const { return "row " + std::to_string(index); }
  uint64_t fingerprint() const { return 1; }
  ~Rows() { crash("close"); }
};

PADDLE_PLUGIN_NOTE("crash", "1.0.0");
PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host* host, paddle_plugin* plugin) {
  crash("entry");
  static paddle::plugin::Plugin made;
  made.operations("twice: {signature: '(x:T) -> out', doc: Twice x., dtypes: {x: float}, "
                  "body: x * 2, vjp: g * 2.0, samples: ['x=f64[1]']}");
  made.pass("look", PADDLE_STAGE_CANONICALIZE, PADDLE_PASS_TRAINING, pass);
  made.reader<Rows>("rows", "rows", "");
  const paddle_status status = made.fill(host, plugin, "crash", "1.0.0");
  static const paddle_kernel kernel = {sizeof kernel, "crash.twice", "cpu", "float32", prepare};
  static const paddle_kernel* const kernels[] = {&kernel};
  plugin->kernel_count = 1;
  plugin->kernels = kernels;
  plugin->start = [](const paddle_host*, paddle_call*) -> paddle_status {
    crash("start");
    return PADDLE_OK;
  };
  return status;
}
C
ok "$plugin" build crash.cc -o crash.so
ok "$plugin" check crash.so --quick --group operators
python3 - <<'P'
import struct, zipfile
header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"
header += b" " * (117 - len(header)) + b"\n"
with zipfile.ZipFile("x.npz", "w") as z:
    z.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<f", 3))
P
printf 'inputs: {x: "float32[1]"}\nmodel: |\n  y = crash.twice(x)\n  return y\n' > model.yaml
cat > rows.yaml <<'Y'
model: {inputs: {x: "float32[batch, 2]"}, model: [{linear: 2}], outputs: [y]}
loss: mse_loss(y, x)
optimizer: {name: sgd, lr: 0.001}
data: {batch_size: 4, train: {kind: crash.rows}}
train: {epochs: 1}
Y

# contained PLACE KIND GROUP SAYS: the check ends with 1, and its case says what happened.
contained() {
  CRASH="$1 $2" timeout 60 "$plugin" check crash.so --quick --timeout 2 --group "$3" > out 2> error
  local status=$?
  [[ $status == 1 ]] || { fail "check with $1 $2 gave $status"; return; }
  grep "^failed: " out | grep -qF -- "$4" || { fail "check with $1 $2 does not say '$4'"; cat out; }
}
# ends STATUS TEXT PLACE KIND COMMAND…: the program ends and names the place.
ends() {
  export CRASH="$3 $4"
  expect "$1" "$2" "${@:5}"
  unset CRASH
}
infer_it=("$infer" model.yaml --input x.npz -o y.npz --overwrite --plugin crash.so)
train_it=("$train" rows.yaml --output run --overwrite --plugin crash.so)
list_it=("$plugin" list --plugin crash.so)
in="inside plug-in crash 1.0.0:"

contained constructor segv load "signal 11 $in loading"
ends 139 "signal 11 $in loading" constructor segv "${list_it[@]}"
contained entry abort load "signal 6 $in paddle_plugin_main"
ends 134 "signal 6 $in paddle_plugin_main" entry abort "${list_it[@]}"
contained entry exit load "crashed"
contained start trap load "signal 4 $in start"
ends 132 "signal 4 $in start" start trap "${list_it[@]}"
contained prepare fpe operators "signal 8 $in prepare of crash.twice"
ends 136 "signal 8 $in prepare of crash.twice" prepare fpe "${infer_it[@]}"
contained run segv operators "signal 11 $in run of crash.twice"
ends 139 "signal 11 $in run of crash.twice, model.yaml:3" run segv "${infer_it[@]}"
contained run stack operators "signal 11 $in run of crash.twice"
ends 139 "signal 11 $in run of crash.twice, model.yaml:3" run stack "${infer_it[@]}"
contained run bus operators "signal 7 $in run of crash.twice"
ends 135 "signal 7 $in run of crash.twice, model.yaml:3" run bus "${infer_it[@]}"
contained run int operators "signal 6 $in run of crash.twice"
ends 134 "signal 6 $in run of crash.twice, model.yaml:3" run int "${infer_it[@]}"
contained run exception operators "crash.twice: a C++ exception left the plug-in crash 1.0.0: thrown by it"
ends 70 "a C++ exception left the plug-in crash 1.0.0: thrown by it" run exception "${infer_it[@]}"
contained run exit operators "crashed"
contained run hang operators "crash.twice"
contained parallel segv operators "signal 11 $in run of crash.twice"
ends 139 "signal 11 $in run of crash.twice, model.yaml:3" parallel segv "${infer_it[@]}"
contained destroy abort operators "signal 6 $in destroy of crash.twice"
contained pass segv passes "signal 11 $in run of crash.look"
ends 139 "signal 11 $in run of crash.look" pass segv "${infer_it[@]}"
ends 139 "signal 11 $in open of crash.rows" open segv "${train_it[@]}"
ends 132 "signal 4 $in size of crash.rows" size trap "${train_it[@]}"
ends 139 "signal 11 $in read of crash.rows" read segv "${train_it[@]}"
ends 134 "signal 6 $in close of crash.rows" close abort "${train_it[@]}"

# A thread of the plug-in's own, and a function of a device: the file and the address are known.
on_device() {  # on_device SIGNAL SED-SCRIPT
  sed "$2" "$relay" > relay.c
  cmp -s relay.c "$relay" && fail "the source of relay has changed"
  ok "$plugin" build relay.c -o relay.so
  expect $((128 + $1)) "signal $1 inside plug-in relay 1.0.0: its code at 0x" "$bin/paddle-op" run add "x=f32(1,2)" \
    "y=f32(3,4)" --device relay --plugin relay.so
}
on_device 11 's|out\[i\] = x\[i\] + y\[i\];|*(volatile float*)8 = x[i] + y[i] + out[i];|'
on_device 4 's|  if (kind < PADDLE_COPY_TO_DEVICE|  __builtin_trap();\n&|'
finish
