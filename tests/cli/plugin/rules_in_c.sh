#!/usr/bin/env bash
# Rules of operations in C: the example is checked, trained with, exported and computed with sizes
# that are known later; rules that are wrong are errors with their cause.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
plugin="$bin/paddle-plugin"
op="$bin/paddle-op"
export PADDLE_INCLUDE="$PWD/include"
unset PADDLE_PLUGINS
root="$PWD"
cd "$folder" || exit 1
says() { grep -qF -- "$1" out || { fail "no '$1' in:"; head -c 800 out; }; }

ok "$plugin" build "$root/plugins/halves/halves.c" -o halves.so
ok "$plugin" check halves.so --quick
says "level: complete"
ok "$op" run halves.first "x=f32[2,3,4](0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23)" --plugin halves.so
says "[2, 3, 2]"
for mode in "" --compiled; do
  ok "$op" run halves.dot "x=f32[2,2](1,2,3,4)" "y=f32[2,2](5,6,7,8)" scale=0.5 $mode --plugin halves.so
  says "[8.5, 26.5]"
done
expect 2 "error: halves.first: an even last axis" "$op" run halves.first "x=f32[2,3]" --plugin halves.so
expect 2 "halves.dot: the shapes of x and y" "$op" run halves.dot "x=f32[2,3]" "y=f32[2,4]" --plugin halves.so
ok "$op" bench halves.dot "x=f32[100,100]" "y=f32[100,100]" --seconds 0.01 --plugin halves.so
cat > digits.yaml << 'Y'
plugins: [halves.so]
model:
  inputs: {image: "float32[batch, 1, 28, 28]"}
  model: |
    h = relu(linear(flatten(image), 64, name="first"))
    h = halves.first(h) * unsqueeze(halves.dot(h, h, scale=0.1), -1)
    logits = linear(tanh(h), 10, name="head")
  outputs: [logits]
loss: cross_entropy(logits, label)
metrics: {accuracy: "accuracy(logits, label)"}
optimizer: {name: adamw, lr: 2e-3}
data:
  batch_size: 48
  train: {kind: digits, size: 600, seed: 1, range: [0, 500]}
  valid: {kind: digits, size: 600, seed: 1, range: [500, 600]}
  transforms: [{scale: {fields: image, factor: 0.00392156862745098}}]
train: {epochs: 1}
Y
ok "$train" digits.yaml --output runs/compiled
ok "$train" digits.yaml --output runs/eager --eager
python3 - << 'P' || fail "the modes differ"
import json
logs = [[json.loads(line) for line in open(f"runs/{mode}/metrics.jsonl")] for mode in ("compiled", "eager")]
losses = [[line["loss"] for line in log if "loss" in line] for log in logs]
assert losses[0] and len(losses[0]) == len(losses[1])
for a, b in zip(*losses): assert abs(a - b) < 1e-3 * abs(b), (a, b)
P
ok "$bin/paddle-infer" runs/compiled --data digits.yaml:valid -o with.npz --plugin halves.so
ok "$bin/paddle-export" runs/compiled --plugin halves.so -o model.onnx
ok "$bin/paddle-infer" model.onnx --data digits.yaml:valid -o without.npz --plugin halves.so
python3 - << 'P' || fail "the ONNX file"
import zipfile, struct
def read(path):
    archive = zipfile.ZipFile(path)
    name = [n for n in archive.namelist() if "logits" in n][0]
    data = archive.read(name)
    offset = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack(f"<{(len(data) - offset) // 4}f", data[offset:])
a, b = read("with.npz"), read("without.npz")
assert len(a) == len(b) == 1000 and max(abs(x - y) for x, y in zip(a, b)) < 1e-4
P

# --- wrong rules ---
cat > base.c << 'C'
#include <paddle/plugin/plugin.h>
PADDLE_PLUGIN_NOTE("wrong", "1.0.0");
static const paddle_types_functions* types;
static const paddle_build_functions* build;
static paddle_status infer(paddle_call* call, const paddle_request* request) {
  (void)call, (void)request;
  INFER;
}
static paddle_status decompose(paddle_call* call, const paddle_request* request) {
  (void)call, (void)request;
  DECOMPOSE;
}
static paddle_status vjp(paddle_call* call, const paddle_request* request) {
  (void)call, (void)request;
  VJP;
}
static paddle_status view(const paddle_request* request, int64_t* strides, int64_t* offset) {
  (void)request, (void)strides;
  *offset = 0;
  VIEW;
}
static const paddle_rules one = {
    .struct_size = RULES_SIZE, .operation = OPERATION, .infer = infer, .decompose = decompose, .vjp = vjp, .view = HAS_VIEW ? view : 0};
static const paddle_rules none = {.struct_size = sizeof none, .operation = "f"};
static const paddle_rules* const rules[] = {RULES};
static const paddle_operation operation = {
    .struct_size = sizeof operation, .schema = SCHEMA, .rule_count = sizeof rules / sizeof rules[0], .rules = rules};
static const paddle_operation* const operations[] = {&operation};
PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host* host, paddle_plugin* plugin) {
  (void)none;
  types = host->table(PADDLE_TYPES, 1);
  build = host->table(PADDLE_BUILD, 1);
  if (host->table(PADDLE_TYPES, 2) || host->table("paddle.nothing", 1)) return PADDLE_USAGE;
  plugin->name = "wrong";
  plugin->version = "1.0.0";
  plugin->operation_count = 1;
  plugin->operations = operations;
  return PADDLE_OK;
}
C
# variant NAME MACRO=VALUE…: builds NAME.so with other rules.
variant() {
  local name="$1"
  shift
  declare -A values=(
    [INFER]='return types->result_like(call, 0)'
    [DECOMPOSE]='return build->give(call, build->expression(call, "x * 2", 0, 0, 0))'
    [VJP]='return build->gradient(call, 0, build->cotangent(call, 0))'
    [VIEW]='return PADDLE_DECLINED'
    [HAS_VIEW]=0
    [OPERATION]='"f"'
    [RULES]='&one'
    [RULES_SIZE]='sizeof one'
    [SCHEMA]="\"f: {signature: '(x) -> out', doc: 2 x., samples: ['x=f64[2,3]']}\"")
  for each in "$@"; do values[${each%%=*}]="${each#*=}"; done
  { for key in "${!values[@]}"; do printf '#define %s %s\n' "$key" "${values[$key]}"; done; cat base.c; } > "$name.c"
  ok "$plugin" build "$name.c" -o "$name.so"
}
# rejected STATUS TEXT NAME…: loading or running the variant ends so.
rejected() {
  local status="$1" text="$2"
  shift 2
  variant "$@"
  expect "$status" "$text" "$op" run wrong.f "x=f32[2,3]" --plugin "$1.so"
}
variant right
ok "$op" run wrong.f "x=f32(1,2)" --plugin right.so
says "[2, 4]"
[[ "$(run_bounded "$plugin" check right.so --quick)" == 1 ]] || fail "a wrong gradient in C passes"
says "failed: gradients wrong.f"
rejected 6 "rules of g: the schema has no such operation" unknown 'OPERATION="g"'
rejected 6 "rules 0: operation must be set" nameless 'OPERATION=0'
rejected 6 "rules of f: has none" empty 'RULES=&none'
rejected 6 "there are two rules of f" twice 'RULES=&one, &one'
rejected 6 "rules 0: is null" null 'RULES=0'
rejected 6 "rules 0: its struct_size 8 is too small" short 'RULES_SIZE=8'
rejected 3 "f: body: is text, and a function in C" both "SCHEMA=\"f: {signature: '(x) -> out', doc: 2 x., body: x * 2}\""
rejected 70 "'infer' of wrong 1.0.0 gives 0 types, its signature has 1 results" untyped 'INFER=return PADDLE_OK'
rejected 2 "operand 7 does not exist" operand 'INFER=return types->result_like(call, 7)'
rejected 2 "axis 5 is out of range" axis 'INFER=return types->operand_dim(call, 0, 5) ? PADDLE_OK : PADDLE_USAGE'
rejected 2 "77 is not a dim of this call" dim 'INFER=return types->add(call, 77, 77) ? PADDLE_OK : PADDLE_USAGE'
rejected 2 "a division by zero" zero 'INFER=return types->floor_divide(call, types->constant(call, 1), types->constant(call, 0)) ? PADDLE_OK : PADDLE_USAGE'
rejected 2 "a dim of the result would be -3" negative 'INFER=paddle_dim d = types->constant(call, -3); return types->result(call, PADDLE_FLOAT32, &d, 1)'
rejected 2 "there is no dtype 99" dtype 'INFER=return types->result(call, 99, 0, 0)'
rejected 2 "are for the rule 'infer'" elsewhere 'DECOMPOSE=return types->result_like(call, 0)'
rejected 2 "its rule 'decompose' gives 0 results" nothing 'DECOMPOSE=return PADDLE_OK'
rejected 2 "its rule 'decompose' gives float32[2], 'infer' float32[2, 3]" rank 'DECOMPOSE=return build->give(call, build->expression(call, "sum(x, 1)", 0, 0, 0))'
rejected 2 "is not a value of this call" value 'DECOMPOSE=return build->give(call, 55)'
rejected 2 "syntax.so:rules:1:1: wrong.f: expected an expression" syntax 'DECOMPOSE=return build->give(call, build->expression(call, "x * * 2", 0, 0, 0))'
rejected 2 "a random operation cannot be called here" random 'DECOMPOSE=return build->give(call, build->expression(call, "x + rand([2, 3])", 0, 0, 0))'
rejected 70 "gives elements outside of the operand" outside 'VIEW=strides[0] = 1000; strides[1] = 1; return PADDLE_OK' HAS_VIEW=1
rejected 70 "'view' of wrong 1.0.0 gives the status 2" view_status 'VIEW=return PADDLE_USAGE' HAS_VIEW=1
rejected 2 "has one result of the dtype of its first operand" view_dtype HAS_VIEW=1 \
  'INFER=paddle_dim d[] = {types->constant(call, 2), types->constant(call, 3)}; return types->result(call, PADDLE_FLOAT64, d, 2)'
finish
