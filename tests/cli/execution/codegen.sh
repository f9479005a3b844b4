#!/usr/bin/env bash
# Machine code for groups: the same run with it, without it, without its module, and from what an
# earlier run has kept; without the module one line says so, unless code was not requested.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
export PADDLE_CACHE_DIR="$folder/cache"
said="warning: operations are not compiled to machine code: /nonexistent/module.so"

# train NAME TIMES [OVERRIDE…]: the run has the weights of the first one, and warns TIMES times.
train() {
  local name="$1" times="$2"
  shift 2
  [[ "$(run_bounded "$bin/paddle-train" configs/quickstart/digits.yaml "data.train={kind: digits, size: 256}" \
    data.valid= train.steps=3 --output "$folder/$name" "$@")" == 0 ]] || fail "training $name"
  [[ "$(grep -c "$said" "$folder/error")" == "$times" ]] || fail "$name does not warn $times times"
  cmp "$folder/off/model/model.safetensors" "$folder/$name/model/model.safetensors" || fail "$name has other weights"
}

# infer TIMES [OPTION…]
infer() {
  local times="$1"
  shift
  [[ "$(run_bounded "$bin/paddle-infer" models/deepfm.yaml --batch 512 --benchmark 1 "$@")" == 0 ]] || fail "paddle-infer $*"
  [[ "$(grep -c "$said" "$folder/error")" == "$times" ]] || fail "paddle-infer $* does not warn $times times"
}

wanted=1
[[ -e "$bin/../lib/libpaddle_codegen.so" ]] || wanted=0
train off 0 compile.codegen=false
[[ ! -e "$folder/cache" ]] || fail "code was made that was not requested"
PADDLE_CODEGEN_MODULE=/nonexistent/module.so train rejected 0 compile.codegen=false
PADDLE_CODEGEN_MODULE=/nonexistent/module.so train without "$wanted"
PADDLE_CODEGEN_MODULE=/nonexistent/module.so infer "$wanted"
PADDLE_CODEGEN_MODULE=/nonexistent/module.so infer 0 --no-codegen
train on 0
((wanted == 0)) || [[ -n "$(ls "$folder/cache/codegen")" ]] || fail "nothing was kept"
PADDLE_CODEGEN_MODULE=/nonexistent/module.so train kept 0
PADDLE_CODEGEN_MODULE=/nonexistent/module.so PADDLE_CACHE_DIR= train not_kept "$wanted"
finish
