#!/usr/bin/env bash
# An operation whose kernel decides the size of its result: checked, run in both modes, and kernels
# that give wrong memory are errors.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
plugin="$bin/paddle-plugin"
export PADDLE_INCLUDE="$PWD/include"
unset PADDLE_PLUGINS WRONG
cd "$folder" || exit 1
cat > positive.c <<'C'
#include <paddle/plugin/plugin.h>

#include <stdlib.h>
#include <string.h>

PADDLE_PLUGIN_NOTE("positive", "1.0.0");

static const char* wrong = "";
static paddle_status run(const void* state, const paddle_run* run) {
  const int64_t size = *(const int64_t*)state;
  const float* const x = run->operands[0];
  int64_t shape[2] = {0, 1};
  for (int64_t i = 0; i < size; ++i) shape[0] += x[i] > 0;
  if (strcmp(wrong, "none") == 0) return PADDLE_OK;
  if (strcmp(wrong, "negative") == 0) shape[0] = -1;
  float* out = run->allocate_result(run->call, strcmp(wrong, "result") == 0, shape, 1 + (strcmp(wrong, "rank") == 0));
  if (out && strcmp(wrong, "twice") == 0) out = run->allocate_result(run->call, 0, shape, 1);
  if (!out) return PADDLE_INTERNAL;
  for (int64_t i = 0; i < size; ++i)
    if (x[i] > 0) *out++ = x[i];
  return PADDLE_OK;
}
static paddle_status prepare(paddle_call* call, const paddle_request* request, paddle_instance* instance) {
  (void)call;
  int64_t* const size = malloc(sizeof *size);
  *size = 1;
  for (int32_t i = 0; i < request->operands[0]->rank; ++i) *size *= request->operands[0]->shape[i];
  instance->state = size;
  instance->destroy = free;
  instance->run = run;
  return PADDLE_OK;
}
static const paddle_operation operation = {
    .struct_size = sizeof operation, .schema = "keep: {signature: (x:T) -> out, doc: The elements above 0., dtypes: {x: float}, infer: 'x.dtype [?]', "
    "body: 'masked_select(x, x > 0)', vjp: 'none: not needed here', samples: ['x=f64[3,5]']}"};
static const paddle_operation* const operations[] = {&operation};
static const paddle_kernel kernel = {sizeof kernel, "positive.keep", "cpu", "float32", prepare};
static const paddle_kernel* const kernels[] = {&kernel};
PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host* host, paddle_plugin* plugin) {
  (void)host;
  if (getenv("WRONG")) wrong = getenv("WRONG");
  plugin->needs_minor = 2;
  plugin->name = "positive";
  plugin->version = "1.0.0";
  plugin->operation_count = plugin->kernel_count = 1;
  plugin->operations = operations;
  plugin->kernels = kernels;
  return PADDLE_OK;
}
C
ok "$plugin" build positive.c -o positive.so
ok "$plugin" check positive.so --quick
grep -q "operators   3       0       0" out || { fail "the check"; cat out; }
for mode in "" --compiled; do
  # shellcheck disable=SC2086
  ok "$bin/paddle-op" run positive.keep "x=f32(3,-1,2,0,-5,4)" --plugin positive.so $mode
  grep -qF "[3, 2, 4]" out || { fail "positive.keep $mode"; cat out; }
  # shellcheck disable=SC2086
  ok "$bin/paddle-op" run positive.keep "x=f32(-1,-2)" --plugin positive.so $mode
  for each in "none gives no memory for a result" "negative the shape of result 0 has a negative size" \
    "result there is no result 1" "rank result 0 has the shape [3, 1], expected" "twice is asked for twice"; do
    export WRONG="${each%% *}"
    # shellcheck disable=SC2086
    expect 70 "${each#* }" "$bin/paddle-op" run positive.keep "x=f32(3,-1,2,0,-5,4)" --plugin positive.so $mode
    unset WRONG
  done
done
finish
