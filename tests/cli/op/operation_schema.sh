#!/usr/bin/env bash
# The operation schema: the rules that an entry implies, and entries that opgen rejects.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
opgen="$bin/../host/opgen"
[[ -x "$opgen" ]] || { echo "opgen is missing"; exit 1; }
mkdir -p "$folder/some" "$folder/core"
cp engine/ops/core/parameters.yaml "$folder/core/"
cat > "$folder/some/some.yaml" <<'Y'
plain:
  signature: (x:T) -> out
  doc: An operation with rules and a kernel of its own name.
  alias: [simple]

composed:
  signature: (x:T) -> out
  doc: A program of other operations.
  decompose: true

both:
  signature: (x:T) -> out
  doc: A program with a kernel, and with the decomposition and the gradient of others.
  infer: both
  vjp: plain
  decompose: composed
  kernel: true

shared:
  signature: (x:T) -> out
  doc: Rules of other names, and no gradient.
  infer: plain
  vjp: "none: integers"
  kernel: plain
  dtypes:
    x: bool|integer

layer:
  signature: (x:T, weight:T, mean) -> out, _new_mean
  doc: A layer.
  dtypes:
    x: float|complex
    mean: float32|float64
  layer: (x, features)
  weights:
    weight: xavier_uniform [features, 3]
  states:
    mean: zeros [features] <- new_mean
Y
generate() { quiet 0 "$opgen" "$folder/some/some.yaml" "$folder/core/parameters.yaml" --out "$folder/generated"; }
generate
rules="$folder/generated/ops/generated/some_rules.h"
table="$folder/generated/ops/generated/some.cc"
row() { tr -d '\n' < "$table" | grep -o "{sizeof(OpDef), 1, \"$1\",[^}]*}"; }
has() { grep -q -- "$2" <<< "$1" || fail "expected $2 in: $1"; }
for rule in infer_plain vjp_plain decompose_composed infer_both infer_decomposed infer_layer vjp_layer; do
  grep -q "\b$rule(" "$rules" || fail "no rule $rule"
done
for rule in infer_composed vjp_composed infer_shared vjp_shared vjp_both decompose_plain; do
  ! grep -q "\b$rule(" "$rules" || fail "the rule $rule should not be needed"
done
has "$(row plain)" "rules::infer_plain, rules::vjp_plain, nullptr"
has "$(row composed)" "rules::infer_decomposed, nullptr, rules::decompose_composed"
has "$(row both)" "rules::infer_both, rules::vjp_plain, rules::decompose_composed"
has "$(row shared)" "rules::infer_plain, nullptr, nullptr"
has "$(grep weights "$table")" "k_layer_weights"
# Operands take real types where an entry does not say otherwise.
has "$(grep k_layer_dtypes "$table" | tr -d ' ' | sed 's/dtype_sets:://g')" \
  "{kFloat|kComplex,kReal,of(DType::kF32)|of(DType::kF64),}"
has "$(row layer)" "k_layer_dtypes, nullptr, nullptr"
has "$(row plain)" "nullptr, 0, nullptr, nullptr, nullptr"
has "$(row layer)" "kTakesComplex"
! grep -q kTakesComplex <<< "$(row shared)" || fail "integers are not complex"
kernels="$(grep register_kernel "$folder/generated/kernels/generated/cpu_table.cc")"
has "$kernels" '"plain", "cpu", prepare_plain'
has "$kernels" '"both", "cpu", prepare_both'
has "$kernels" '"shared", "cpu", prepare_plain'
! grep -q '"composed"' <<< "$kernels" || fail "a decomposition needs no kernel"

rejected() {
  printf '%s\n' "broken:" "  signature: (x:T, weight:T) -> out" "  doc: Broken." "$@" > "$folder/some/broken.yaml"
  expect 3 "$wanted" "$opgen" "$folder/some/broken.yaml" "$folder/core/parameters.yaml" --out "$folder/generated"
}
wanted="broken.yaml:1: broken: unknown key 'kernle'" rejected "  kernle: x"
wanted="vjp: 'none' needs a reason: 'none: reason'" rejected "  vjp: none"
wanted="has neither kernel nor decomposition" rejected "  kernel: none"
wanted="weight: 'ones': expected 'INIT [SIZES]'" rejected "  weights: {weight: ones}"
wanted="the initializer is zeros, ones, xavier_uniform or constant(ARGUMENT)" rejected "  weights:" "    weight: large [3]"
wanted="a state ends in '<- RESULT'" rejected "  states:" "    weight: zeros [3]"
wanted="dtypes: it has no operand 'y'" rejected "  dtypes:" "    y: float"
wanted="dtypes: it has no operand 'out'; a result can be complex" rejected "  dtypes:" "    out: float"
wanted="joined by '|', found 'flaot'" rejected "  dtypes:" "    x: integer|flaot"
wanted="dtypes: expected '+complex' or dtypes by operand, found 'complex'" rejected "  dtypes: complex"
wanted="it has no result 'mean'" rejected "  states:" "    weight: zeros [3] <- mean"
finish
