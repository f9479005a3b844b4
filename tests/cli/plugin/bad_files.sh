#!/usr/bin/env bash
# Files that cannot be loaded: each ends in one line with its cause, and the exit code of the guide.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
command -v "${CC:-cc}" > /dev/null || { echo "a compiler of C is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
include="$PWD/include"
unset PADDLE_PLUGINS
export PADDLE_PLUGIN_LIST="$folder/list.json"
cd "$folder" || exit 1
most_lines=3
count=0

# bad STATUS TEXT FILE: the file is rejected in a line that begins with its name and has the text.
bad() {
  count=$((count + 1))
  expect "$1" "$2" "$bin/paddle-plugin" list --plugin "$3"
  grep -q "^error: $3" error || { fail "an error without the name of the file"; cat error; }
}
# yaml STATUS TEXT: the file on standard input.
yaml() {
  cat > bad.plugin.yaml
  bad "$1" "$2" bad.plugin.yaml
}
head='plugin: {name: bad, version: 1.0.0, abi: 1}'
# operation STATUS TEXT KEYS: an operation with these keys besides its signature and doc.
operation() {
  yaml "$1" "$2" < <(printf '%s\noperations:\n  one: {signature: (x:T) -> out, doc: One., %s}\n' "$head" "$3")
}

# ---- YAML ----

yaml 3 ":1:1: 'plugin' is missing" <<< 'operations: {}'
yaml 3 "" <<< ''
yaml 3 ":1:" <<< '[1, 2'
yaml 3 "unknown key 'operation'" <<< "$head
operation: {}"
yaml 3 "has no section with operations, rules or other parts" <<< "$head"
yaml 6 "is for version 2 of the plug-in interface" <<< 'plugin: {name: bad, version: 1.0.0, abi: 2}
operations: {}'
yaml 6 "expected a version such as 1.0.0, found 'new'" <<< 'plugin: {name: bad, version: new, abi: 1}
operations: {one: {signature: (x:T) -> out, doc: One., body: x}}'
yaml 6 "the name of a plug-in has lower-case letters" <<< 'plugin: {name: Bad, version: 1.0.0, abi: 1}
operations: {one: {signature: (x:T) -> out, doc: One., body: x}}'
yaml 6 "the name 'comm' is reserved" <<< 'plugin: {name: comm, version: 1.0.0, abi: 1}
operations: {one: {signature: (x:T) -> out, doc: One., body: x}}'
operation 3 ":3: one: has no body" "dtypes: {x: float}"
operation 3 ":3:" "body: x *"
operation 3 "unknown key 'bodi'" "bodi: x"
operation 3 "'bernoulli' is random" "body: bernoulli(x)"
operation 3 "trait" "body: x, traits: [fast]"
operation 3 "cannot have the trait 'random'" "body: x, traits: [random]"
operation 3 "infer: 'like z'" "body: x, infer: like z"
operation 3 "expected a dtype" "body: x, infer: 'float33 [n]'"
operation 3 ":3:" "body: x, vjp: g *"
operation 3 "dtypes" "body: x, dtypes: {x: floats}"
operation 3 "dtypes" "body: x, dtypes: {z: float}"
operation 3 "sharding" "body: x, sharding: '[a ->'"
yaml 3 ":3:" < <(printf '%s\noperations:\n  one: {signature: x -> -> out, doc: One., body: x}\n' "$head")
operation 3 "one: expected a text, found a list or a map" "body: x, dtypes: {x: [float32, float64]}"
# part STATUS TEXT SECTION KEYS: an entry of a section with these keys.
part() {
  yaml "$1" "$2" < <(printf '%s\n%s:\n  one: {doc: One., %s}\n' "$head" "$3" "$4")
}
part 3 "'update' is missing in 'optimizers.one'" optimizers "lr: 1"
part 3 "'optimizers.one.lr'" optimizers "lr: -1, update: parameter = parameter"
part 3 "unknown key 'state'" optimizers "lr: 1, state: {m: 0}, update: parameter = parameter"
part 3 "'gradient' cannot be the name of a state" optimizers "lr: 1, states: {gradient: 0}, update: parameter = parameter"
part 3 "'lr' cannot be the name of a key" optimizers "lr: 1, keys: {lr: {type: real}}, update: parameter = parameter"
part 3 "expected a number" optimizers "lr: 1, states: {m: zeros}, update: parameter = parameter"
part 3 "expected one of path, text" optimizers "lr: 1, keys: {a: {type: float}}, update: parameter = parameter"
part 3 "no key is a path" schedules "keys: {a: {type: path}}, factor: 1"
part 3 ":3:" schedules "factor: 1 +"
part 3 "'bernoulli' is random" schedules "factor: bernoulli(step)"
part 3 "a state is one of sum(x), min(x) and max(x), found 'mean(x)'" metrics "operands: [x], state: {a: mean(x)}, value: a"
part 3 "is a duplicate, or not a name" metrics "operands: [x, x], state: {a: sum(x)}, value: a"
part 3 "an integer, real or boolean with a default" metrics "operands: [x], keys: {a: {type: text}}, state: {b: sum(x)}, value: b"
part 3 ":3:" metrics "operands: [x], state: {a: sum(x)}, value: b"
part 3 "unknown name 'b'" optimizers "lr: 1, keys: {beta: {type: real}}, update: parameter = relu(b)"
part 3 "unknown operation or block 'tanhh' (did you mean 'tanh'?)" transforms "body: tanhh(x)"
operation 3 ":3:51: unknown operation or block 'tanhh'" "body: tanhh(x)"
operation 3 "unknown name 'y'" "body: x, vjp: g * y"
operation 3 "unknown operation 'bad.two'" "body: bad.two(x)"
part 3 "has no state" metrics "operands: [x], state: {}, value: 1"
part 3 "'transforms.one.draws'" transforms "body: x, draws: 1000"
part 3 "'draws' cannot be the name of a key" transforms "body: x, keys: {draws: {type: real}}"
part 3 "the name of an entry has lower-case letters" "transforms: {Two: {doc: d, body: x}}
metrics" "operands: [x], state: {a: sum(x)}, value: a"
yaml 3 "unknown operation 'matmull'" <<< "$head
precision: {low: [matmull]}"
yaml 3 "unknown key 'lower'" <<< "$head
precision: {lower: [matmul]}"
yaml 3 "sharding" <<< "$head
sharding: {relu: '[a ->'}"
yaml 3 ":3: One: a name has lower-case letters" < <(printf '%s\noperations:\n  One: {signature: (x:T) -> out, doc: One., body: x}\n' "$head")
yaml 3 ":3: there is no operation 'relux'" < <(printf '%s\nrules: |\n  a: abs(x) -> relux(x)\n' "$head")
yaml 3 ":3:" < <(printf '%s\nrules: |\n  a: abs(x -> relu(x)\n' "$head")

# ---- files ----

bad 2 "nowhere.so: no such plug-in file" nowhere.so
mkdir folder.so
bad 6 "folder.so: is not a file" folder.so
printf 'hello' > text.so
bad 6 "text.so: is not a shared object (ELF) or YAML file" text.so
: > empty.so
bad 6 "empty.so: is not a shared object (ELF) or YAML file" empty.so

cat > bad.c <<'C'
#include <paddle/plugin/plugin.h>
#ifndef NO_NOTE
PADDLE_PLUGIN_NOTE("bad", "1.0.0");
#endif
#ifndef NAME
#define NAME "bad"
#endif
static const paddle_host* the_host;
static paddle_status prepare(paddle_call* call, const paddle_request* request, paddle_instance* instance) {
  (void)call, (void)request, (void)instance;
  return PADDLE_DECLINED;
}
static paddle_status pass(paddle_call* call, const char* module) {
  (void)call, (void)module;
  return PADDLE_OK;
}
static paddle_status start(const paddle_host* host, paddle_call* call) {
  return host->fail(call, PADDLE_DEVICE, "no key is plugged in");
}
extern int of_nobody(void);
static const paddle_operation operation = {.struct_size = OPERATION_SIZE, .schema = SCHEMA};
static const paddle_operation* const operations[] = {OPERATION};
static const paddle_kernel kernel = {sizeof kernel, KERNEL_OF, BACKEND, DTYPES, PREPARE};
static const paddle_kernel* const kernels[] = {&kernel};
static const paddle_pass a_pass = {sizeof a_pass, STAGE, PASS_NAME, 0, 0, 0, pass};
static const paddle_pass* const passes[] = {&a_pass};
static const paddle_device_api device = {.struct_size = sizeof device, .version = 1, .name = "half"};
static const paddle_device_api* const devices[] = {&device};
static paddle_status open_rows(paddle_call* call, const paddle_options* options, void** state) {
  (void)call, (void)options, (void)state;
  return PADDLE_OK;
}
static const paddle_reader reader = {.struct_size = sizeof reader, .name = "rows", .keys = KEYS, .open = open_rows};
static const paddle_reader* const readers[] = {&reader};
static paddle_status supports(paddle_call* call, const char* operation, const paddle_request* request) {
  (void)call, (void)operation, (void)request;
  return PADDLE_DECLINED;
}
static const paddle_compiler compiler = {.struct_size = COMPILER_SIZE, .name = COMPILER_NAME, .device = COMPILER_DEVICE,
                                         .supports = supports};
static const paddle_compiler* const compilers[] = {&compiler};
#ifdef HIDDEN
static __attribute__((used))
#else
PADDLE_PLUGIN_EXPORT
#endif
paddle_status paddle_plugin_main(const paddle_host* host, paddle_plugin* plugin) {
  the_host = host;
  plugin->name = NAME;
  plugin->version = "1.0.0";
  plugin->needs_minor = NEEDS;
  plugin->operation_count = 1;
  plugin->operations = operations;
  plugin->kernel_count = KERNELS;
  plugin->kernels = kernels;
  plugin->pass_count = PASSES;
  plugin->passes = passes;
  plugin->device_count = DEVICES;
  plugin->devices = devices;
  plugin->reader_count = READERS;
  plugin->readers = readers;
  plugin->compiler_count = COMPILERS;
  plugin->compilers = compilers;
  if (START) plugin->start = start;
  if (UNDEFINED) of_nobody();
  return STATUS;
}
C
# native STATUS TEXT DEFINITIONS…: bad.c with these values instead of right ones.
native() {
  local status="$1" text="$2" name value definitions=() flags=()
  shift 2
  declare -A values=([OPERATION_SIZE]="sizeof operation" [KERNEL_OF]='"abs"' [BACKEND]='"cpu"'
    [SCHEMA]='"one: {signature: (x:T) -> out, doc: One., body: x}"' [DTYPES]='"float32"' [PREPARE]=prepare [STAGE]=1
    [PASS_NAME]='"look"' [KEYS]='""' [NEEDS]=0 [KERNELS]=1 [PASSES]=1 [DEVICES]=0 [READERS]=0 [COMPILERS]=0
    [COMPILER_SIZE]="sizeof compiler" [COMPILER_NAME]='"loops"' [COMPILER_DEVICE]=0 [START]=0 [UNDEFINED]=0
    [STATUS]=PADDLE_OK)
  values[OPERATION]="&operation"
  for definition in "$@"; do
    [[ "$definition" == -* ]] && { flags+=("$definition"); continue; }
    values[${definition%%=*}]="${definition#*=}"
  done
  for name in "${!values[@]}"; do definitions+=("-D$name=${values[$name]}"); done
  "${CC:-cc}" -w -std=gnu11 -shared -fPIC -I "$include" "${definitions[@]}" bad.c -o bad.so "${flags[@]}" ||
    fail "bad.c does not compile"
  if [[ "$status" == 0 ]]; then
    ok "$bin/paddle-plugin" list --plugin bad.so
  else
    bad "$status" "$text" bad.so
  fi
}
native 0 ""
native 6 ": is not a plug-in: it has no note" -DNO_NOTE
native 6 ": does not export paddle_plugin_main" -DHIDDEN
native 6 ": cannot be loaded: undefined symbol: of_nobody" UNDEFINED=1
native 6 "calls itself other 1.0.0, its note says bad 1.0.0" 'NAME="other"'
native 6 "name and version must be set" NAME=0
native 6 "needs version 1.99 of the plug-in interface" NEEDS=99
native 6 "paddle_plugin_main gave the status 4" STATUS=4
native 6 "operation 0" OPERATION_SIZE=4
native 6 "operation 0" OPERATION=0
native 6 "operation 0: has no schema" SCHEMA=0
native 3 ":operations:1:" 'SCHEMA="one: {signature: (x:T) -> out, doc: One., body: x *}"'
native 6 "kernel 0: operation, backend and prepare must be set" PREPARE=0
native 6 "kernel 0: unknown operation 'bad.two'" 'KERNEL_OF="bad.two"'
native 6 "unknown backend 'gpu'" 'BACKEND="gpu"'
native 6 "unknown dtype 'float33'" 'DTYPES="float33"'
native 6 "there is no stage 77" STAGE=77
native 6 "'Look': a name has lower-case letters" 'PASS_NAME="Look"'
native 6 "device 0: the table of a device lacks functions" DEVICES=1
native 6 "reader" READERS=1
native 6 "compiler loops: supports and compile must be set" COMPILERS=1
native 6 "compiler 0: its struct_size 8 is too small" COMPILERS=1 COMPILER_SIZE=8
native 6 "compiler 0: expected a name of lower-case letters" COMPILERS=1 'COMPILER_NAME="Loops"'
native 6 "more than 64 compilers" COMPILERS=65
native 6 "start: no key is plugged in" START=1

native 0 ""
cp bad.so open.so
chmod o+w open.so
bad 6 "open.so: other users may write it (chmod o-w)" open.so
head -c 3000 bad.so > short.so
bad 6 "short.so: the file is truncated" short.so
# patched OFFSET BYTE: a header with another byte.
patched() { python3 -c 'import sys
data = bytearray(open("bad.so", "rb").read())
if sys.argv[1] == "note":
    at = data.index(b"paddle\0\0") + 8
else:
    at = int(sys.argv[1])
data[at] = int(sys.argv[2])
open("patched.so", "wb").write(data)' "$@"; }
patched 18 243
bad 6 "patched.so: was built for RISC-V" patched.so
patched 4 1
bad 6 "patched.so: was built for a machine of another kind" patched.so
patched note 7
bad 6 "patched.so: was built for version 7." patched.so
"${CC:-cc}" -shared -fPIC -x c /dev/null -o libof_nobody.so
native 6 ": cannot be loaded: libof_nobody.so: cannot open shared object file" -Wl,--no-as-needed -L. -lof_nobody
# Two files of one name, and a file that is not the one that was added to the list.
native 0 ""
cp bad.so second.so
count=$((count + 1))
expect 6 "second.so: the plug-in bad is loaded already" "$bin/paddle-plugin" list --plugin bad.so --plugin second.so
ok "$bin/paddle-plugin" add bad second.so
echo >> second.so
count=$((count + 1))
expect 6 "second.so: has the sha256" "$bin/paddle-plugin" list --plugin bad

((count >= 40)) || fail "$count files"
echo "$count files are rejected"
finish
