#include "inspect/samples.h"

#include <map>
#include <string_view>

namespace paddle::inspect {
namespace {

struct Entry {
  const char* op;
  const char* sample;
};

// An empty sample: checked with another operation alone.
// Inputs stay away from points where a derivative jumps, and inside the function's domain.
constexpr Entry kEntries[] = {
    // Functions of one tensor with a domain or a kink.
    {"log", "x=f64[2,3]{0.5,3}"},
    {"log2", "x=f64[2,3]{0.5,3}"},
    {"log10", "x=f64[2,3]{0.5,3}"},
    {"log1p", "x=f64[2,3]{-0.5,3}"},
    {"sqrt", "x=f64[2,3]{0.5,3}"},
    {"rsqrt", "x=f64[2,3]{0.5,3}"},
    {"reciprocal", "x=f64[2,3]{0.5,3}"},
    {"asin", "x=f64[2,3]{-0.8,0.8}"},
    {"acos", "x=f64[2,3]{-0.8,0.8}"},
    {"atanh", "x=f64[2,3]{-0.8,0.8}"},
    {"acosh", "x=f64[2,3]{1.2,3}"},
    {"erfinv", "x=f64[2,3]{-0.8,0.8}"},
    {"lgamma", "x=f64[2,3]{0.5,4}"},
    {"digamma", "x=f64[2,3]{0.5,4}"},
    {"polygamma", "x=f64[2,3]{0.5,4} n=1"},
    {"polygamma", "x=f64[2,3]{0.5,4} n=2"},
    {"logit", "x=f64[2,3]{0.2,0.8}"},
    {"logit", "x=f64[2,3]{0.2,0.8} eps=0.01"},
    {"gelu", "x=f64[2,3]"},
    {"gelu", "x=f64[2,3] approximate=true"},
    {"scale", "x=f64[2,3] scale=2.5 bias=1.0 bias_after_scale=false"},
    {"clip", "x=f64(-2,-0.3,0.2,1.7) min=-1 max=1"},
    {"hardtanh", "x=f64(-2,-0.3,0.2,1.7)"},
    {"relu6", "x=f64(-2,0.3,4,7)"},
    {"hardsigmoid", "x=f64(-4,-1.3,0.2,3.7)"},
    {"hardswish", "x=f64(-4,-1.3,0.2,3.7)"},
    {"softplus", "x=f64(-2,-0.3,0.2,30) beta=2.0"},
    {"cast", "x=f64[2,3] dtype=float64"},
    // Two tensors.
    {"add", "x=f64[2,3] y=f64[3]"},
    {"subtract", "x=f64[2,1] y=f64[2,3]"},
    {"multiply", "x=f64[2,1,3] y=f64[4,1]"},
    {"divide", "x=f64[2,3] y=f64[2,3]{0.5,2}"},
    {"divide", "x=f64[3] y=f64[2,3]{-2,-0.5}"},
    {"remainder", "x=f64(1.3,-2.6,4.2) y=f64(0.9,1.1,-1.7)"},
    {"pow", "x=f64[2,3]{0.5,2} y=f64[2,3]"},
    {"pow", "x=f64(-1.5,0.7,2.0) y=f64(2,3,2)!"},
    {"maximum", "x=f64[2,3] y=f64[3]"},
    {"where", "condition=bool[2,3] x=f64[2,3] y=f64[3]"},
    {"hypot", "x=f64[2,3] y=f64[3]{0.5,2}"},
    {"heaviside", "x=f64[2,3] y=f64[2,3]"},
    {"lerp", "x=f64[2,3] y=f64[2,3] weight=f64[3]"},
    {"ldexp", "x=f64[2,3] y=f64[2,3]{-2,2}"},
    {"prelu", "x=f64[2,3,2] weight=f64[3]"},
    {"prelu", "x=f64[2,3] weight=f64[1]"},
    {"glu", "x=f64[2,6]"},
    {"swiglu", "x=f64[2,3] y=f64[2,3]"},
    {"swiglu", "x=f64[2,6]"},
    {"maxout", "x=f64[2,4,3] groups=2"},
    {"multiplex", "inputs=[f64[3,2],f64[3,2]] index=i32[3,1](1,0,1)"},
    {"add_n", "inputs=[f64[2,3],f64[2,3],f64[2,3]]"},
    // Reductions.
    {"sum", "x=f64[2,3,4] axis=[0,2]"},
    {"sum", "x=f64[2,3,4]"},
    {"mean", "x=f64[2,3,4] axis=[-1] keepdim=true"},
    {"max", "x=f64[2,3,4] axis=1"},
    {"min", "x=f64[2,3,4] axis=[0,2]"},
    {"prod", "x=f64[2,3,2] axis=1"},
    {"prod", "x=f64(1.5,0,-2,0.7)"},
    {"logsumexp", "x=f64[2,3,4] axis=[0,2]"},
    {"cumsum", "x=f64[2,3,4] axis=1"},
    {"cumsum", "x=f64[2,3]"},
    {"topk", "x=f64[2,5] k=2"},
    {"kthvalue", "x=f64[2,5] k=2"},
    {"quantile", "x=f64[2,5] q=0.3 axis=1"},
    {"nanquantile", "x=f64[2,5] q=[0.3,0.6] axis=1"},
    {"softmax", "x=f64[2,3,4] axis=1"},
    {"log_softmax", "x=f64[2,3,4]"},
    // Products.
    {"matmul", "x=f64[2,3] y=f64[3,4]"},
    {"matmul", "x=f64[3] y=f64[2,3,4]"},
    {"matmul", "x=f64[2,1,4,3] y=f64[5,3,2] transpose_x=false"},
    {"matmul", "x=f64[3,2] y=f64[4,3] transpose_x=true transpose_y=true"},
    {"linear", "x=f64[2,4,3] weight=f64[3,5] bias=f64[5]"},
    {"mm", "input=f64[2,3] mat2=f64[3,4]"},
    {"bmm", "x=f64[2,3,4] y=f64[2,4,2]"},
    {"mv", "x=f64[2,3] vec=f64[3]"},
    {"addmm", "input=f64[4] x=f64[2,3] y=f64[3,4] beta=0.5 alpha=2.0"},
    {"baddbmm", "input=f64[2,2,4] x=f64[2,2,3] y=f64[2,3,4] beta=0.5 alpha=2.0"},
    {"multi_dot", "x=[f64[2,3],f64[3,4],f64[4,2]]"},
    {"matrix_power", "x=f64[3,3] n=3"},
    {"einsum", "equation=ij,jk->ki operands=[f64[2,3],f64[3,4]]"},
    {"einsum", "equation=bij,bkj,k operands=[f64[2,3,4],f64[2,5,4],f64[5]]"},
    {"einsum", "equation=ii->i operands=[f64[3,3]]"},
    {"bilinear", "x1=f64[2,3] x2=f64[2,4] weight=f64[5,3,4] bias=f64[1,5]"},
    // Shapes.
    {"reshape", "x=f64[2,6] shape=[3,-1]"},
    {"transpose", "x=f64[2,3,4] perm=[2,0,1]"},
    {"squeeze", "x=f64[2,1,3] axis=1"},
    {"unsqueeze", "x=f64[2,3] axis=[0,2]"},
    {"flatten", "x=f64[2,3,2]"},
    {"expand", "x=f64[2,1] shape=[3,2,4]"},
    {"strided_slice", "x=f64[5,4] axes=[0,1] starts=[4,0] ends=[0,3] strides=[-2,1]"},
    {"strided_slice_scatter", "x=f64[5,4] value=f64[2,4] axes=[0] starts=[0] ends=[4] strides=[2]"},
    {"slice_scatter", "x=f64[5,4] value=f64[2,4] axes=[0] starts=[0] ends=[4] strides=[2]"},
    {"select_scatter", "x=f64[3,4] values=f64[4] axis=0 index=1"},
    {"concat", "x=[f64[2,3],f64[1,3]] axis=0"},
    {"split", "x=f64[2,6] num_or_sections=[1,-1,2] axis=1"},
    {"split", "x=f64[4,3] num_or_sections=2"},
    {"stack", "x=[f64[2,3],f64[2,3]] axis=1"},
    {"pad", "x=f64[2,3] pad=[1,0,0,2]"},
    {"pad", "x=f64[1,2,4,3] pad=[1,2,0,1] mode=reflect"},
    {"pad", "x=f64[1,2,4,3] pad=[1,2,0,1] mode=replicate"},
    {"pad", "x=f64[1,2,4,3] pad=[1,2,0,1] mode=circular"},
    {"slice", "input=f64[3,5] axes=[0,1] starts=[-2,1] ends=[3,4]"},
    {"diagonal_scatter", "x=f64[3,4] y=f64[3]"},
    {"diagonal_scatter", "x=f64[3,4,2] y=f64[3,2] offset=-1 axis1=2 axis2=1"},
    {"flip", "x=f64[2,3] axis=[1]"},
    {"roll", "x=f64[2,3] shifts=[1,-2] axis=[0,1]"},
    {"roll", "x=f64[2,3] shifts=2"},
    {"tile", "x=f64[2,3] repeat_times=[2,1,2]"},
    {"repeat_interleave", "x=f64[2,3] repeats=2 axis=1"},
    {"swapaxes", "x=f64[2,3,4] axis0=0 axis1=2"},
    {"moveaxis", "x=f64[2,3,4] source=[0] destination=[2]"},
    {"unflatten", "x=f64[2,6] axis=1 shape=[2,-1]"},
    {"chunk", "x=f64[4,3] chunks=2"},
    {"tensor_split", "x=f64[5,3] num_or_indices=[1,3]"},
    {"tensor_split", "x=f64[2,5] num_or_indices=3 axis=1"},
    {"hsplit", "x=f64[2,4] num_or_indices=2"},
    {"vsplit", "x=f64[4,3] num_or_indices=[1,3]"},
    {"dsplit", "x=f64[2,1,4] num_or_indices=2"},
    {"meshgrid", "args=[f64[3],f64[2]]"},
    {"unfold_axis", "x=f64[2,7] axis=1 size=3 step=2"},
    // Indexing.
    {"gather_along", "x=f64[3,4] index=i64[2,4]{0,3} axis=0"},
    {"scatter_along", "x=f64[3,4] index=i64[1,4](0,2,2,1) values=f64[1,4] axis=0 reduce=add"},
    {"scatter_along", "x=f64[3,4] index=i64[1,4](0,2,2,1) values=f64[1,4] axis=0 reduce=assign"},
    {"scatter_along",
     "x=f64[3,4]{0.5,2} index=i64[2,4](0,2,2,1,0,1,2,0) values=f64[2,4]{0.5,2} axis=0 reduce=mul"},
    {"scatter_along",
     "x=f64[3,4] index=i64[2,4](0,2,2,1,0,1,2,0) values=f64[2,4] axis=0 reduce=mean"},
    {"scatter_along",
     "x=f64[3,4] index=i64[2,4](0,2,2,1,0,1,2,0) values=f64[2,4] axis=0 reduce=amax"},
    {"take_along_axis", "arr=f64[3,4] indices=i64[2,1](0,2) axis=0"},
    {"put_along_axis", "arr=f64[3,4] indices=i64[1,4](0,2,2,1) values=f64[1,4] axis=0 reduce=add"},
    {"index_select", "x=f64[3,4] index=i64(2,0,2) axis=0"},
    {"index_add", "x=f64[3,4] index=i64(2,0) axis=0 value=f64[2,4] alpha=1.5"},
    {"gather", "x=f64[3,4] index=i64(2,0,2) axis=1"},
    {"gather_nd", "x=f64[3,4,2] index=i64[3,2](0,1,2,3,0,1)"},
    {"scatter_nd_add", "x=f64[3,4] index=i64[3,1](0,2,0) updates=f64[3,4]"},
    {"scatter_nd_put", "x=f64[3,4] index=i64[2,1](0,2) updates=f64[2,4]"},
    {"scatter_nd", "index=i64[3,1](0,2,0) updates=f64[3,4] shape=[4,4]"},
    {"scatter", "x=f64[3,4] index=i64(2,0) updates=f64[2,4]"},
    {"scatter", "x=f64[3,4] index=i64(2,0,2) updates=f64[3,4] overwrite=false"},
    {"index_put", "x=f64[3,4] indices=[i64(0,2),i64(1,3)] value=f64[2]"},
    {"index_put", "x=f64[3,4] indices=[i64(0,2,0),i64(1,3,1)] value=f64[3] accumulate=true"},
    {"index_sample", "x=f64[3,4] index=i64[3,2]{0,4}"},
    {"index_fill", "x=f64[3,4] index=i64(2,0) axis=1 value=0.5"},
    {"take", "x=f64[3,4] index=i64[2,2](0,11,-3,4)"},
    {"masked_select", "x=f64[2,3] mask=bool[2,3](1,0,1,1,0,0)"},
    {"masked_fill", "x=f64[2,3] mask=bool[2,3](1,0,1,1,0,0) value=f64[1](0.5)"},
    {"masked_scatter", "x=f64[2,3] mask=bool[2,3](1,0,1,1,0,0) value=f64[4]"},
    // Losses.
    {"softmax_cross_entropy", "logits=f64[3,4] label=i64(1,3,0)"},
    {"softmax_cross_entropy_grad", "grad=f64[3] logits=f64[3,4] label=i64(1,3,0) log_sum=f64[3]"},
    {"cross_entropy", "input=f64[3,4] label=i64(1,3,0)"},
    {"cross_entropy", "input=f64[3,4] label=i64(1,3,-100) weight=f64[4]{0.5,2}"},
    {"cross_entropy", "input=f64[3,4] label=f64[3,4]{0.1,1} soft_label=true label_smoothing=0.1"},
    {"binary_cross_entropy_with_logits",
     "logit=f64[2,3] label=f64[2,3]{0.1,0.9} weight=f64[3]{0.5,2} pos_weight=f64[3]{0.5,2}"},
    {"nll_loss", "input=f64[3,4] label=i64(1,3,0)"},
    {"nll_loss", "input=f64[3,4] label=i64(1,-100,0) weight=f64[4]{0.5,2}"},
    {"binary_cross_entropy",
     "input=f64[2,3]{0.1,0.9} label=f64[2,3]{0.1,0.9} weight=f64[3]{0.5,2}"},
    {"cosine_embedding_loss", "input1=f64[3,4] input2=f64[3,4] label=f64(1,-1,1)! margin=-0.5"},
    {"log_loss", "input=f64[3,1]{0.1,0.9} label=f64[3,1]{0.1,0.9}"},
    {"dice_loss", "input=f64[3,4]{0.1,1} label=i64[3,1](1,3,0)"},
    {"gaussian_nll_loss", "input=f64[2,3] label=f64[2,3] variance=f64[2,3]{0.5,2} full=true"},
    // Layers.
    {"conv2d",
     "x=f64[2,4,5,6] weight=f64[6,2,3,2] bias=f64[6] stride=2 padding=1 dilation=[1,2] groups=2"},
    {"conv2d", "x=f64[1,5,5,3] weight=f64[2,3,2,2] padding=SAME data_format=NHWC"},
    {"conv2d_input_grad",
     "weight=f64[2,3,2,2] grad=f64[1,2,3,3] input_shape=[1,3,4,4] stride=[1,1] padding=[0,0,0,0] "
     "dilation=[1,1]"},
    {"conv2d_weight_grad",
     "x=f64[1,3,4,4] grad=f64[1,2,3,3] weight_shape=[2,3,2,2] stride=[1,1] padding=[0,0,0,0] "
     "dilation=[1,1]"},
    {"conv1d", "x=f64[2,4,7] weight=f64[6,2,3] bias=f64[6] stride=2 padding=1 groups=2"},
    {"conv2d_transpose",
     "x=f64[1,4,3,4] weight=f64[4,2,3,2] bias=f64[4] stride=2 padding=1 output_padding=1 groups=2"},
    {"conv1d_transpose", "x=f64[1,2,4] weight=f64[2,3,3] bias=f64[3] stride=2"},
    {"max_pool1d", "x=f64[1,2,7] kernel_size=3 stride=2"},
    {"avg_pool1d", "x=f64[1,2,7] kernel_size=3 stride=2 padding=1"},
    {"adaptive_avg_pool1d", "x=f64[1,2,7] output_size=3"},
    {"adaptive_avg_pool2d", "x=f64[1,2,5,4] output_size=[3,2]"},
    {"adaptive_max_pool1d", "x=f64[1,2,7] output_size=3"},
    {"adaptive_max_pool2d", "x=f64[1,2,5,4] output_size=[3,2]"},
    {"group_norm", "x=f64[2,4,3] num_groups=2 weight=f64[4] bias=f64[4]"},
    {"instance_norm", "x=f64[2,3,4] weight=f64[3] bias=f64[3]"},
    {"rms_norm", "input=f64[2,5] normalized_shape=5 weight=f64[5]"},
    {"local_response_norm", "x=f64[2,5,3] size=3 alpha=0.5 data_format=NCL"},
    {"pixel_shuffle", "x=f64[1,8,2,3] upscale_factor=2"},
    {"pixel_unshuffle", "x=f64[1,2,4,2] downscale_factor=2"},
    {"channel_shuffle", "x=f64[1,6,2,2] groups=3"},
    {"zeropad2d", "x=f64[1,2,3,3] padding=[1,0,2,1]"},
    {"unfold", "x=f64[1,2,4,5] kernel_sizes=[2,3] strides=1 paddings=1"},
    {"unfold", "x=f64[2,7] axis=1 size=3 step=2"},
    {"fold", "x=f64[1,8,9] output_sizes=[5,5] kernel_sizes=[2,2] strides=2 paddings=1"},
    {"interpolate", "x=f64[1,2,3,4] size=[5,6] mode=bilinear"},
    {"interpolate", "x=f64[1,2,3,4] size=[5,6] mode=bicubic align_corners=true"},
    {"dropout2d", "x=f64[2,3,2,2] p=0.4"},
    {"max_pool2d", "x=f64[1,2,5,6] kernel_size=[2,3] stride=2 padding=1"},
    {"max_pool2d_grad", "grad=f64[1,1,2,2] mask=i32[1,1,2,2](0,3,10,15) input_shape=[1,1,4,4]"},
    {"max_pool2d_take", "x=f64[1,1,4,4] mask=i32[1,1,2,2](0,3,10,15)"},
    {"avg_pool2d", "x=f64[1,2,5,6] kernel_size=[2,3] stride=2 padding=1"},
    {"avg_pool2d_grad", "grad=f64[1,2,2,2] input_shape=[1,2,4,4] kernel_size=2"},
    {"layer_norm", "x=f64[2,3,4] normalized_shape=[3,4] weight=f64[3,4] bias=f64[3,4]"},
    {"layer_norm", "x=f64[2,5] normalized_shape=5"},
    {"layer_norm_grad",
     ""},  // at second order of layer_norm; alone, its operands do not fit together
    {"batch_norm",
     "x=f64[4,3,2] running_mean=f64[3]! running_var=f64[3]{0.5,2}! weight=f64[3] bias=f64[3] "
     "training=true"},
    {"batch_norm",
     "x=f64[4,3] running_mean=f64[3]! running_var=f64[3]{0.5,2}! weight=f64[3] bias=f64[3]"},
    {"batch_norm_grad", ""},
    {"lstm",
     "x=f64[2,3,2] weights=[f64[12,2],f64[12,3],f64[12],f64[12]] initial_h=f64[1,2,3] "
     "initial_c=f64[1,2,3]"},
    {"gru", "x=f64[2,3,2] weights=[f64[9,2],f64[9,3],f64[9],f64[9]] initial_h=f64[1,2,3]"},
    {"simple_rnn", "x=f64[2,3,2] weights=[f64[3,2],f64[3,3],f64[3],f64[3]]"},
    {"simple_rnn",
     "x=f64[2,3,2] direction=bidirect "
     "weights=[f64[3,2],f64[3,3],f64[3],f64[3],f64[3,2],f64[3,3],f64[3],f64[3]]"},
    {"recurrent_scan", ""},
    {"recurrent_scan_grad", ""},
    {"dropout", "x=f64[4,5] p=0.4"},
    {"dropout", "x=f64[4,5] p=0.4 training=false mode=downscale_in_infer"},
    {"embedding", "x=i64[2,3]{0,5} weight=f64[5,4] padding_idx=1"},
    {"embedding_grad", "x=i64[2,3]{0,5} grad=f64[2,3,4] rows=5"},
    {"scaled_dot_product_attention",
     "query=f64[1,3,2,4] key=f64[1,5,2,4] value=f64[1,5,2,4] attn_mask=f64[1,1,3,5]"},
    {"scaled_dot_product_attention",
     "query=f64[1,4,2,3] key=f64[1,4,2,3] value=f64[1,4,2,3] is_causal=true"},
};

/// float64 [2, 3] for every operand that must be there.
std::string default_sample(const Op& op) {
  std::string sample;
  for (const OperandDef& o : op.operands()) {
    if (o.optional || o.hidden) continue;
    sample += o.kind == OperandKind::kList ? std::string(o.name) + "=[f64[2,3],f64[2,3]] "
                                           : std::string(o.name) + "=f64[2,3] ";
  }
  return sample;
}

}  // namespace

std::vector<std::string> samples_of(const Op& op) {
  std::vector<std::string> out;
  bool listed = false;
  for (const Entry& e : kEntries) {
    if (op.name() != e.op) continue;
    listed = true;
    if (*e.sample) out.emplace_back(e.sample);
  }
  if (!listed) out.push_back(default_sample(op));
  return out;
}

}  // namespace paddle::inspect
