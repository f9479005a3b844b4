#include "kernels/onednn/post_ops.h"

#include "base/parallel_copy.h"
#include "ops/generated/nn.h"

namespace paddle::onednn {

EltwisePostOp eltwise_post_op(const Op& op, const Attrs& attrs) {
  using A = dnnl::algorithm;
  const std::string_view name = op.name();
  if (name == "relu") return {A::eltwise_relu};
  if (name == "gelu")
    return {GeluAttrs(attrs).approximate ? A::eltwise_gelu_tanh : A::eltwise_gelu_erf};
  if (name == "silu") return {A::eltwise_swish, 1};
  if (name == "hardswish") return {A::eltwise_hardswish};
  if (name == "relu6") return {A::eltwise_clip, 0, 6};
  if (name == "sigmoid") return {A::eltwise_logistic};
  if (name == "leaky_relu")
    return {A::eltwise_relu, static_cast<float>(LeakyReluAttrs(attrs).negative_slope)};
  return {};
}

dnnl::primitive_attr post_ops(const Epilogue& epilogue) {
  return post_ops(epilogue, epilogue.residual >= 0, true);
}

dnnl::primitive_attr post_ops(const Epilogue& epilogue, bool accumulate, bool last) {
  dnnl::primitive_attr attributes = user_scratchpad();
  dnnl::post_ops ops;
  if (accumulate) ops.append_sum(1.0f);
  if (last && epilogue.activation) {
    const EltwisePostOp a = eltwise_post_op(*epilogue.activation->op, epilogue.activation->attrs);
    ops.append_eltwise(1.0f, a.algorithm, a.alpha, a.beta);
  }
  attributes.set_post_ops(ops);
  return attributes;
}

void add_residual_copy(Program& program, const Epilogue& epilogue, const Layout& result) {
  if (epilogue.residual < 0) return;
  const int64_t bytes = storage_bytes(result.dtype, result.size());
  const auto operand = static_cast<size_t>(epilogue.residual);
  program.add({operand},
              [bytes, operand](const RunContext&, void* const* operands, void* const* results) {
                if (operands[operand] != results[0])
                  parallel_copy(results[0], operands[operand], bytes);
              });
}

}  // namespace paddle::onednn
