#!/usr/bin/env bash
# The dtypes that operations declare: calls with others are rejected before anything runs, in the
# names of the call, eagerly and compiled; `paddle op show` and `list` say what operands take.
set -uo pipefail
command -v python3 > /dev/null || { echo "python3 is missing"; exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/../expect.bash"
op="$bin/paddle-op"
rejected() {
  local text="error: $1: $2"
  shift 2
  for mode in "" --compiled; do
    # shellcheck disable=SC2086
    expect 2 "$text" "$op" run "$@" $mode
  done
}
rejected embedding "'x' must be of an integer type, not float32" embedding 'x=f32[3]' 'weight=f32[3,2]'
rejected bitwise_and "'x' must be of a boolean or an integer type, not float32" bitwise_and 'x=f32[2]' 'y=f32[2]'
rejected masked_select "'mask' must be bool, not int64" masked_select 'x=f32[2]' 'mask=i64(1,0)'
rejected conv2d "'x' must be of a floating type, not int32" conv2d 'x=i32[1,1,3,3]' 'weight=i32[1,1,2,2]'
rejected erf "'x' must be of a real type, not complex64" erf 'x=c64[2]'
rejected fft_c2c "'x' must be of a complex type, not float32" fft_c2c 'x=f32[4]' 'axes=[0]'
# A kernel or an operation inside of a decomposition rejected these.
rejected inv "'x' must be float32 or float64 or of a complex type, not float16" inv 'x=f16[2,2]'
rejected gather "'index' must be of an integer type, not float32" gather 'x=f32[3]' 'index=f32(1,0)'
rejected polar "'abs' must be" polar 'abs=f16[2]' 'angle=f16[2]'
# Quantized, packed and cached operands, and states of optimizers.
rejected quantized_linear "'weight' must be int8, not uint8" quantized_linear 'x=u8[2,4]' 'weight=u8[4,3]'
rejected quantize "'zero_point' must be float32 or of an integer type, not float64" quantize 'x=f32[2]' 'scale=f32[]' 'zero_point=f64[]'
rejected linear_compress "'x' must be of a floating type, not int32" linear_compress 'x=i32[2,4]' 'weight=i8[3,4]' 'weight_scale=f32[3]'
rejected packed_linear "'weight' must be uint8 or of a floating type, not int8" packed_linear 'x=f32[2,32]' 'weight=i8[3,34]' format=q8_0 features=32
rejected packed_linear "weight must be uint8 in the format q8_0, not float32[3, 34]" packed_linear 'x=f32[2,32]' 'weight=f32[3,34]' format=q8_0 features=32
rejected cache_append "'slots' must be int64, not int32" cache_append 'cache=f32[32,2,4]' 'value=f32[3,2,4]' 'slots=i32(0,5,1)'
rejected cached_attention "'lengths' must be int64, not int32" cached_attention 'query=f32[2,4,8]' 'key_cache=f32[2,2,8,16]' 'value_cache=f32[32,2,8]' 'starts=i64(0,0)' 'lengths=i32(1,2)' scale=0.5
rejected block_multihead_attention "'block_tables' must be of an integer type, not float32" block_multihead_attention 'qkv=f32[4,24]' 'key_cache=f32[6,2,2,3]' 'value_cache=f32[6,2,2,3]' 'seq_lens_encoder=i32[2,1]' 'seq_lens_decoder=i32[2,1]' 'seq_lens_this_time=i32[2,1]' 'block_tables=f32[2,3]' block_size=2
rejected fused_moe "'ffn1_weight' must be int8 or of a floating type, not int32" fused_moe 'x=f32[1,3,4]' 'gate_weight=f32[4,3]' 'ffn1_weight=i32[3,4,6]' 'ffn2_weight=f32[3,3,4]'
rejected merge_rows "'indices' must be int64, not int32" merge_rows 'indices=i32(0,1)' 'rows=f32[2,3]'
rejected momentum_update "'velocity' must be of a floating type, not int32" momentum_update 'param=f32[2]' 'grad=f32[2]' 'velocity=i32[2]' 'lr=f32[]'
# Operands are promoted first; number operands and shapes take any type.
quiet 0 "$op" run softmax 'x=i32[3]'
quiet 0 "$op" run polar 'abs=i32[2]' 'angle=f32[2]'
quiet 0 "$op" run embedding 'x=u8(0,2)' 'weight=f32[3,2]'
quiet 0 "$op" run is_complex 'x=c64[3]'
"$op" show index_select > "$folder/page"
grep -Eq "^  index +tensor; of an integer type$" "$folder/page" || fail "paddle op show: $(< "$folder/page")"
grep -Eq "^  x +tensor; of a real or a complex type$" "$folder/page" || fail "paddle op show: $(< "$folder/page")"
"$op" list --json > "$folder/list.json"
python3 - "$folder/list.json" <<'P' || fail "paddle op list --json"
import json, sys
kinds = {"bool", "integer", "float", "complex", "real"}
operands = [(op["name"], p) for op in json.load(open(sys.argv[1])) for p in op["parameters"] if p["type"].startswith("tensor")]
for name, p in operands:
    assert p["dtypes"], (name, p)
    assert all(word in kinds or word[-1].isdigit() for word in p["dtypes"]), (name, p)
restricted = [name for name, p in operands if "real" not in p["dtypes"]]
assert len(set(restricted)) > 300, len(set(restricted))
P
finish
