#!/usr/bin/env bash
# A few random calls of every family of operations: results and typed errors alone. Longer runs:
# paddle op fuzz FAMILY --time 600.
set -uo pipefail
status=0
for family in engine/ops/*/; do
  family="$(basename "$family")"
  case "$family" in comm | control | core | opgen) continue ;; esac
  "$PADDLE_BIN/paddle-op" fuzz "$family" --time 0.5 --seed 3 --keep-going > "${TMPDIR:-/tmp}/fuzz.$$" ||
    { echo "FAIL: $family"; cat "${TMPDIR:-/tmp}/fuzz.$$"; status=1; }
done
rm -f "${TMPDIR:-/tmp}/fuzz.$$"

# Calls that once ended in a crash or in an error without a type: they give a result or say what is wrong.
found() {
  local text="$1" out
  shift
  for mode in "" --compiled; do
    # shellcheck disable=SC2086
    out="$(ulimit -v 8000000; timeout 60 "$PADDLE_BIN/paddle-op" run "$@" $mode 2>&1)"
    grep -qF -- "$text" <<< "$out" || { echo "FAIL: $* $mode does not say '$text': ${out:0:200}"; status=1; }
  done
}
found "float32[1, 3, 0]" cache_append 'cache=f32[1,3,0]' 'value=f32[1,3,0]' 'slots=i64(0)'
found "must be of an integer type" softmax_cross_entropy_grad 'grad=f64[5]' 'logits=f64[5]' 'label=f64[5]' 'log_sum=f64[5]' axis=-2
found "stride must be 2147483647 at most" avg_pool2d 'x=f32[2,4,3,2]' kernel_size=2 'stride=[4611686018427387904]' exclusive=true data_format=NHWC
found "output_size must be 2147483647 at most" adaptive_max_pool2d 'x=f64[1,2,5,4]' output_size=4611686018427387904
found "count must be from 0" send_u_recv 'x=u8[3,0,0]' 'src_index=i64(0,1,2,0)' 'dst_index=i64(1,2,1,0)' reduce_op=mean out_size=9223372036854775807
found "n_fft must be from 1" audio_spectrogram 'x=i16[2,30]' n_fft=2147483647 hop_length=4 power=2.0 dtype=float64 win_length=65536 pad_mode=constant
found "uint8[0" pad 'x=u8[0,1,1,8]' 'pad=[2147483647,5]' value=1
found "memory" lkj_cholesky_sample 'concentration=f64[3,3]' dim=2 'shape=[2147483647,3,16]'
found "axis -2 is out of range" matrix_norm 'x=f32[4]'
found "float64[2, 1, 5]" frame 'x=f64[7,2]' frame_length=5 hop_length=4611686018427387904 axis=0

"$PADDLE_BIN/paddle-op" fuzz maths > /dev/null 2>&1 && { echo "FAIL: an unknown family"; status=1; }
exit $status
