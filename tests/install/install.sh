#!/usr/bin/env bash
# Use without the source tree: installs into an empty prefix, moves it, runs the installed programs
# from another folder, builds the examples against it and checks what they print.
set -euo pipefail
build="$(cd "${PADDLE_BIN:?}/.." && pwd)"
source_folder="$PWD"
generator="$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$build/CMakeCache.txt")"
if grep -q '^BUILD_SHARED_LIBS:.*=ON' "$build/CMakeCache.txt"; then
  echo "builds with shared rooms are not installed"
  exit 77
fi
folder="$build/install-test"
rm -rf "$folder"
mkdir -p "$folder"
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "FAIL: $1"
  exit 1
}
# near NUMBER WANTED TOLERANCE
near() { awk -v x="$1" -v y="$2" -v t="$3" 'BEGIN { d = x - y; exit !(d <= t && d >= -t) }'; }

cmake --install "$build" --prefix "$folder/first" > "$folder/install.log" 2>&1 ||
  { cat "$folder/install.log"; fail "cmake --install"; }
# Nothing in it may depend on where it was installed.
mv "$folder/first" "$folder/prefix"
prefix="$folder/prefix"
if grep -rIl -e "$source_folder" -e "$folder/first" "$prefix"; then
  fail "text files name the source tree or the prefix"
fi

# ---- programs ------------------------------------------------------------------------------------

mkdir "$folder/elsewhere"
cd "$folder/elsewhere"
export PATH="$prefix/bin:/usr/bin:/bin" PADDLE_CACHE_DIR="$folder/cache"
unset PADDLE_CODEGEN_MODULE PADDLE_BIN
for page in "$prefix"/share/man/man1/*.1; do
  [[ "$(head -c 3 "$page")" == .TH ]] || fail "$page is not a manual page"
done
[[ -s "$prefix/share/man/man1/paddle-train.1" && -s "$prefix/share/man/man1/paddle.1" ]] ||
  fail "manual pages"
bash -n "$prefix/share/bash-completion/completions/paddle" || fail "bash completion"
[[ -e "$prefix/share/bash-completion/completions/paddle-train" ]] || fail "completion of paddle-train"
[[ -s "$prefix/share/zsh/site-functions/_paddle" ]] || fail "zsh completion"
[[ -s "$prefix/share/fish/vendor_completions.d/paddle.fish" ]] || fail "fish completion"
found="$(bash -c "source '$prefix/share/bash-completion/completions/paddle'
  COMP_WORDS=(paddle op check --back) COMP_CWORD=3
  _paddle 2> /dev/null; printf '%s' \"\${COMPREPLY[*]}\"
  COMP_WORDS=(paddle-op check --backend '') COMP_CWORD=3
  _paddle 2> /dev/null; printf ' %s' \"\${COMPREPLY[*]}\"")"
[[ "$found" == "--backend cpu onednn cuda cublaslt cudnn" ]] || fail "bash completes '$found'"

# y = 2 a - b + 0.5 exactly, so that is what a linear layer learns.
awk 'BEGIN { print "a,b,y"; for (i = 0; i < 40; ++i) { a = (i % 7) / 7 - 0.4; b = (i % 5) / 5 - 0.4
  printf "%.6f,%.6f,%.6f\n", a, b, 2 * a - b + 0.5 } }' > rows.csv
cat > line.yaml <<'Y'
model: {inputs: {x: "float32[batch, 2]"}, model: [{linear: 1}], outputs: [prediction]}
loss: mse_loss(prediction, y)
optimizer: {name: sgd, lr: 0.5}
data:
  batch_size: 8
  train: &rows
    kind: csv
    path: rows.csv
    fields: [{name: x, columns: [a, b]}, {name: y, columns: [y]}]
  valid: *rows
train: {epochs: 60, log_every: 100}
Y
paddle train line.yaml --output run > train.out || fail "paddle train"
grep -q '^model: run/model$' train.out || fail "paddle train says no model folder"
paddle-infer run/model --input rows.csv --output y.csv > /dev/null || fail "paddle-infer"
paddle-show "$prefix/share/paddle/models/lenet.yaml" > /dev/null || fail "the installed models"
paddle train "$prefix/share/paddle/configs/quickstart/digits.yaml" --dry-run > /dev/null ||
  fail "the installed configs"

# The code generator is found next to the library and next to the programs: a warning would say if not.
cat > gelu.yaml <<'Y'
extends: line.yaml
model: {inputs: {x: "float32[batch, 2]"}, model: [{linear: 64}, {gelu: {}}, {linear: 1}], outputs: [prediction]}
Y
generated() {
  # generated NAME COMMAND...: the command compiles operations to machine code, into an empty cache
  local cache="$folder/cache-$1"
  PADDLE_CACHE_DIR="$cache" "${@:2}" > out 2> error || { cat error; fail "$1"; }
  grep -q "machine code" error && { cat error; fail "$1 does not find the code generator"; }
  ! paddle --version | grep -q 'code generator: llvm' || [[ -n "$(ls -A "$cache/codegen" 2> /dev/null)" ]] ||
    fail "$1 compiled nothing"
}
generated program paddle-train gelu.yaml --output gelu train.epochs=1

# ---- examples ------------------------------------------------------------------------------------

for language in cpp c; do
  cp -r "$source_folder/examples/$language" "$folder/example-$language"
  cmake -S "$folder/example-$language" -B "$folder/build-$language" -G "$generator" \
    -DCMAKE_PREFIX_PATH="$prefix" > "$folder/log" 2>&1 &&
    cmake --build "$folder/build-$language" -j 2 >> "$folder/log" 2>&1 ||
    { cat "$folder/log"; fail "examples/$language do not build"; }
done

"$folder/build-cpp/train" line.yaml learned train.epochs=50 > out || fail "examples: train"
grep -q '^valid step 250 loss 0.0000$' out || { cat out; fail "examples: the log of train"; }
grep -qx '250 steps, model in learned/model' out || { cat out; fail "examples: the result of train"; }
grep -qx '3 parameters' out || fail "examples: parameters"
"$folder/build-cpp/train_steps" line.yaml stepped 1e-6 > out || fail "examples: train_steps"
grep -qx 'checkpoint stepped/checkpoints/10' out || { cat out; fail "examples: a checkpoint of train_steps"; }
"$folder/build-c/train_c" line.yaml stepped_c 1e-6 > out_c || fail "examples: train_c"
grep -qx "$(grep steps, out | sed 's/stepped/stepped_c/')" out_c || { cat out out_c; fail "examples: train_c"; }
"$folder/build-cpp/predict" learned/model 1 2 > out || fail "examples: predict"
grep -qx 'input x: float32 \[batch, 2\]' out || { cat out; fail "examples: inputs"; }
grep -qx 'output prediction: float32 \[batch, 1\]' out || { cat out; fail "examples: outputs"; }
near "$(tail -n 1 out | tr -d '[]')" 0.5 0.01 || { cat out; fail "2 * 1 - 2 + 0.5 is 0.5"; }
"$folder/build-c/predict_c" learned/model 3 1 > out || fail "examples: predict_c"
near "$(tail -n 1 out)" 5.5 0.02 || { cat out; fail "2 * 3 - 1 + 0.5 is 5.5"; }
"$folder/build-cpp/gradients" > out || fail "examples: gradients"
printf 'weights 2.000 -1.000\nderivatives 12.0 12.0\nsoftmax [[0.5, 0.5]]\n' | cmp - out ||
  { cat out; fail "examples: what gradients prints"; }
# A language model whose tokens are the words w0 to w49.
cp -r "$source_folder/tests/llm/data/llama" llama
awk 'BEGIN { printf "{\"model\": {\"type\": \"WordLevel\", \"unk_token\": \"w0\", \"vocab\": {"
  for (i = 0; i < 50; ++i) printf "%s\"w%d\": %d", (i ? ", " : ""), i, i
  print "}}, \"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}}" }' > llama/tokenizer.json
for program in build-cpp/generate build-c/generate_c; do
  "$folder/$program" llama "w38 w16 w18 w38 w38 w37 w24 w10 w42" 1 > out || fail "examples: $program"
  printf ' w16\n1 tokens after a prompt of 9\n' | cmp - out || { cat out; fail "examples: what $program prints"; }
done
generated library "$folder/build-cpp/train" gelu.yaml gelu_api train.epochs=1
# Errors carry the exit codes of the tools.
status=0
"$folder/build-cpp/predict" nowhere 2> error || status=$?
[[ $status == 2 && -s error ]] || fail "a model that is not there gives $status"
status=0
"$folder/build-c/predict_c" learned/model 1 2 3 2> error || status=$?
[[ $status == 4 ]] && grep -q "'x'" error || fail "a row that is too long gives $status: $(cat error)"
status=0
"$folder/build-cpp/train" line.yaml wrong optimizer.lrr=1 2> error || status=$?
[[ $status == 3 ]] && grep -q "lrr" error || fail "a wrong key gives $status: $(cat error)"

# ---- plug-ins ------------------------------------------------------------------------------------

for kind in kernel device; do
  paddle plugin new "$kind" "of_$kind" --cmake > out || fail "paddle plugin new --cmake"
  grep -qx "  cmake -S of_$kind -B of_$kind/build" out || { cat out; fail "what to do next"; }
  cmake -S "of_$kind" -B "of_$kind/build" -G "$generator" -DCMAKE_PREFIX_PATH="$prefix" > "$folder/log" 2>&1 &&
    cmake --build "of_$kind/build" >> "$folder/log" 2>&1 && ctest --test-dir "of_$kind/build" >> "$folder/log" 2>&1 ||
    { cat "$folder/log"; fail "a plug-in with a $kind"; }
  ! grep -qi warning "$folder/log" || { cat "$folder/log"; fail "a plug-in with a $kind: warnings"; }
done
# A schema in a file of its own, with all that a string of C has to escape; a fault fails the test.
mkdir own && cat > own/ops.yaml <<'Y'
twice:
  signature: (x:T) -> out
  doc: 'Twice "x"; \\ $x @x@.'
  dtypes: {x: float}
  body: x * 2.0
  samples: ["x=f64[3]"]
Y
cat > own/own.c <<'C'
#include <paddle/plugin/plugin.h>

#include "own_schema.h"

PADDLE_PLUGIN_NOTE("own", "1.0.0");
PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host* host, paddle_plugin* plugin) {
  static const paddle_operation operation = {sizeof operation, own_schema};
  static const paddle_operation* const operations[] = {&operation};
  (void)host;
  plugin->name = "own";
  plugin->version = "1.0.0";
  plugin->operation_count = 1;
  plugin->operations = operations;
  return PADDLE_OK;
}
int another_symbol(void) { return 1; }
C
cat > own/CMakeLists.txt <<'C'
cmake_minimum_required(VERSION 3.20)
project(own LANGUAGES C)
find_package(paddle 0.1 CONFIG REQUIRED COMPONENTS plugin)
enable_testing()
paddle_add_plugin(own SOURCES own.c SCHEMA ops.yaml CHECK full)
C
own() { cmake --build own/build > log 2>&1 && ctest --test-dir own/build > log 2>&1; }
cmake -S own -B own/build -G "$generator" -DCMAKE_PREFIX_PATH="$prefix" > log 2>&1 && own ||
  { cat log; fail "a plug-in with a schema"; }
paddle plugin info own/build/own.so | grep -qx "exports: paddle_plugin_main" || fail "what own.so exports"
paddle op run own.twice "x=f32(1,2)" --plugin own/build/own.so | grep -qF "[2, 4]" || fail "own.twice"
sed -i 's/body: .*/body: x * 2.0\n  traits: [linear]\n  vjp: g/' own/ops.yaml
! own || fail "a wrong gradient passes ctest"
sed -i 's/COMPONENTS plugin/COMPONENTS plugins/' own/CMakeLists.txt
! cmake -S own -B own/other -G "$generator" -DCMAKE_PREFIX_PATH="$prefix" > log 2>&1 || fail "an unknown component"

# ---- pkg-config ----------------------------------------------------------------------------------

if command -v pkg-config > /dev/null; then
  export PKG_CONFIG_PATH="$(dirname "$(find "$prefix" -name paddle.pc)")"
  # shellcheck disable=SC2046
  cc "$folder/example-c/predict.c" -o with_pkg_config $(pkg-config --cflags --libs paddle) ||
    fail "pkg-config"
  LD_LIBRARY_PATH="$(pkg-config --variable=libdir paddle)" ./with_pkg_config learned/model 0 0 > out ||
    fail "a program linked by pkg-config"
  near "$(tail -n 1 out)" 0.5 0.01 || fail "the program linked by pkg-config"
fi

# ---- symbols -------------------------------------------------------------------------------------

library="$(find "$prefix" -name libpaddle.so)"
foreign="$(nm -D --defined-only -C "$library" | cut -d' ' -f3- |
  grep -v -e 'paddle::v0::' -e '^paddle_' -e '^PADDLE_' || true)"
[[ -z "$foreign" ]] || fail "the library exports symbols that are not its interface: $foreign"
echo "the installed tree works"
