#!/usr/bin/env bash
# A few random calls of every family of operations: results and typed errors only. Longer runs:
# paddle op fuzz FAMILY --time 600.
set -uo pipefail
status=0
for family in engine/ops/*/; do
  family="$(basename "$family")"
  case "$family" in comm | control | core) continue ;; esac
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
found "size overflows 64 bits" repeat_interleave 'x=i64[2]' 'repeats=[1,5,9223372036854775807]'
found "blank 9223372036854775807 is not one of the 3 classes" warpctc 'logits=f64[4,2,3]' 'label=i32[2,2](1,2,2,2)' 'logits_length=i64(4,3)' 'labels_length=i64(2,1)' blank=9223372036854775807
found "stride and dilation must be positive" depthwise_conv2d_transpose 'x=f64[1,3,3,4]' 'filter=f64[3,1,3,2]' 'strides=[0,5]' 'output_padding=[3,-1]' groups=3 'output_size=[-2]' padding_algorithm=SAME
found "stride and dilation must be positive" conv3d_transpose 'x=f64[1,2,3,3,4]' 'weight=f64[2,1,2,3,2]' 'stride=[1,0,5]' padding=SAME
found "n_fft must be from 1" audio_spectrogram 'x=i16[2,30]' n_fft=2147483647 hop_length=4 power=2.0 dtype=float64 win_length=65536 pad_mode=constant
found "uint8[0" pad 'x=u8[0,1,1,8]' 'pad=[2147483647,5]' value=1
found "memory" pad 'x=bool[2]' 'pad=[4398046511104,16]'
found "memory" lkj_cholesky_sample 'concentration=f64[3,3]' dim=2 'shape=[2147483647,3,16]'
found "axis -2 is out of range" matrix_norm 'x=f32[4]'
found "float64[1, 5, 2]" frame 'x=f64[7,2]' frame_length=5 hop_length=4611686018427387904 axis=0
found "downsample_ratio must be 2147483647 at most" yolo_loss 'x=f64[1,14,3,3]' 'gt_box=f64[1,2,4](0.3,0.4,0.5,0.4,0.7,0.6,0.3,0.6)!' 'gt_label=i64[1,2](0,1)' 'anchors=[10,13,16,30,33,23]' 'anchor_mask=[0,2]' class_num=2 ignore_thresh=0.7 downsample_ratio=4611686018427387904
found "num_classes must be 2147483647 at most" multi_box_head 'inputs=[f64[1,2,2,2],f64[1,2,1,1]]' 'image=f64[1,3,8,8]!' 'loc_weights=[f64[8,2,1,1],f64[8,2,1,1]]' 'conf_weights=[f64[6,2,1,1],f64[6,2,1,1]]' base_size=8 num_classes=9223372036854775807 'aspect_ratios=[[1],[1]]' 'min_sizes=[2,4]' 'max_sizes=[4,6]'
found "max_ratio must be 2147483647 at most" multi_box_head 'inputs=[f64[1,2,2,2],f64[1,2,2,2],f64[1,2,1,1]]' 'image=f64[1,3,8,8]!' 'loc_weights=[f64[8,2,1,1],f64[8,2,1,1],f64[8,2,1,1]]' 'conf_weights=[f64[6,2,1,1],f64[6,2,1,1],f64[6,2,1,1]]' base_size=8 num_classes=3 'aspect_ratios=[[1],[1],[1]]' min_ratio=20 max_ratio=9223372036854775807
found "n must be positive and at most 2^31" fftfreq n=9223372036854775807
found "int64[3]" shard_index 'input=i64(3,7,1)' index_num=8 nshards=9223372036854775807 shard_id=5
found "n must be 2147483647 at most" polygamma 'x=f64[2]{1,2}' n=9223372036854775807
found "do not divide" maxout 'x=f64[1,0,2]' groups=9223372036854775807
found "would be too large" truncated_gaussian 'shape=[0,9223372036854775807,4]' mean=-1 a=-1 b=5 dtype=float64
found "8 weights for 4611686018427387904 layers" simple_rnn 'x=f64[2,3,2]' direction=bidirect 'weights=[f64[3,2],f64[3,3],f64[3],f64[3],f64[3,2],f64[3,3],f64[3],f64[3]]' num_layers=4611686018427387904 training=false
found "float64[14]" istft 'x=c128[5,6]' n_fft=8 'window=f32[8]{1,2}' length=9223372036854775807
found "offset must be from 0 to" as_strided 'x=f32[2,4]' 'shape=[3,2]' 'stride=[1,2]' offset=9223372036854775807
found "stride must be from" as_strided 'x=f32[2,4]' 'shape=[3,2]' 'stride=[1,-9223372036854775807]' offset=0
found "upscale_factor must be 2147483647 at most" pixel_shuffle 'x=f64[1,8,2,3]' upscale_factor=4611686018427387904
found "padding [-1, 0, 0, 0] is negative" unfold 'x=f64[1,1,3,3]' 'kernel_sizes=[2,2]' 'paddings=[-1,0,0,0]'
found "padding must be 2147483647 at most" unfold 'x=f64[1,1,3,3]' 'kernel_sizes=[2,2]' 'paddings=[9223372036854775807,0,9223372036854775807,0]'
found "more than 65536 places" unfold 'x=f64[1,1,3,3]' kernel_sizes=65536 paddings=65536
found "padding must be 2147483647 at most" conv2d 'x=f64[1,1,3,3]' 'weight=f64[1,1,2,2]' padding=9223372036854775807
found "blank must be 2147483647 at most" rnnt_loss 'input=f64[1,2,2,3]' 'label=i64[1,1](1)' 'input_lengths=i64(2)' 'label_lengths=i64(1)' blank=9223372036854775807
found "padding_start must be 2147483647 at most" sequence_conv 'input=f64[3,2]' 'lengths=i64(1,2)' 'weight=f64[6,2]' filter_size=3 padding_start=9223372036854775807
found "min_level must be -2147483647 at least" distribute_fpn_proposals 'fpn_rois=f64[2,4]' min_level=-9223372036854775807 max_level=9223372036854775807 refer_level=4 refer_scale=224
found "rows or columns of x are empty" pool2d 'x=f32[3,3,0,5]{0,2}' 'kernel_size=[2,3]' 'strides=[2,2]' 'paddings=[1,1]' ceil_mode=true
found "rows or columns of x are empty" max_pool2d 'x=bool[4,5,2,0]' 'kernel_size=[2,3]' stride=2 padding=1 ceil_mode=true
found "weight is float64[], the normalized axes are" layer_norm_grad 'grad=f64[3,8,5,3]' 'x=f64[3,8,5,3]{0,2}' 'mean=f64[]' 'rstd=f64[]{0,2}' 'weight=f64[]'
found "rstd does not fit x" layer_norm_grad 'grad=f64[3,4]' 'x=f64[3,4]' 'mean=f64[3]' 'rstd=f64[1]'
found "mean must be float64" layer_norm_grad 'grad=f64[3,4]' 'x=f64[3,4]' 'mean=f32[3]' 'rstd=f32[3]'
found "rstd must be float64" batch_norm_grad 'grad=f64[3,4]' 'x=f64[3,4]' 'mean=f64[4]' 'rstd=f32[4]'
found "log_sum must be float64 [batch, heads, queries]" attention_grad 'grad=f64[1,2,3,4]' 'query=f64[1,2,3,4]' 'key=f64[1,2,3,4]' 'value=f64[1,2,3,4]' 'out=f64[1,2,3,4]' 'log_sum=f32[1,3,2]'
found "more dimensions than the scores" attention_grad 'grad=f64[1,2,3,4]' 'query=f64[1,2,3,4]' 'key=f64[1,2,3,4]' 'value=f64[1,2,3,4]' 'mask=f64[1,1,1,1,2]' 'out=f64[1,2,3,4]' 'log_sum=f64[1,3,2]'
found "float32[0, 2147483647, 5]" nearest_interp_v2 'x=f32[0,1,5]' out_h=5 out_w=2147483647 data_format=NHWC out_d=8
found "more than half of the memory" affine_grid 'theta=f32[0,2,3]' 'out_shape=[0,1,4611686018427387904,1]'
found "int64[2, 0]" tril_indices row=65536 col=4096 offset=-9223372036854775807
found "int64[2, 0]" triu_indices row=65536 col=4096 offset=9223372036854775807
found "float64[5, 2, 3]" flash_attn_unpadded 'query=f64[5,2,3]' 'key=f64[6,1,3]' 'value=f64[6,1,3]' 'cu_seqlens_q=i32(0,2,5)' 'cu_seqlens_k=i32(0,3,6)' max_seqlen_q=2147483647 max_seqlen_k=3 scale=0.5 causal=true
found "padding must be -2147483647 at least" max_unpool2d 'x=f64[1,1,2,2]' 'indices=i32[1,1,2,2](0,3,9,14)' kernel_size=2 padding=-9223372036854775807
found "float64[2, 4, 3]" group_norm 'x=f64[2,4,3]' num_groups=2 'weight=f64[4]' 'bias=f32[4]' data_format=NC
found "nan" packed_linears 'x=f32[2,256]' 'weights=[u8[3,210],u8[2,176]]' 'biases=[f32[3],f32[2]]' 'norm=f32[256]' 'formats=[q6_k,q5_k]' features=256 epsilon=-1

"$PADDLE_BIN/paddle-op" fuzz maths > /dev/null 2>&1 && { echo "FAIL: an unknown family"; status=1; }
exit $status
