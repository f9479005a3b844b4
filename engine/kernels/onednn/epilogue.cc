#include "kernels/onednn/epilogue.h"

#include "base/parallel_copy.h"
#include "kernels/onednn/post_ops.h"
#include "ops/generated/attrs.h"

namespace paddle::onednn {
namespace {

using Prepare = std::unique_ptr<Kernel> (*)(const KernelRequest&, const OperandPlaces&,
                                            const Epilogue&);

/// The kernel of an operation that a group may begin with; null for others.
Prepare beginning(std::string_view op) {
  if (op == "conv2d" || op == "conv3d") return &convolution;
  if (op == "matmul") return &matrix_product;
  if (op == "linear") return &linear_layer;
  return nullptr;
}

Activation activation(std::string_view op, const Attrs& attrs) {
  using A = dnnl::algorithm;
  if (op == "relu") return {A::eltwise_relu};
  if (op == "gelu")
    return {GeluAttrs(attrs).approximate ? A::eltwise_gelu_tanh : A::eltwise_gelu_erf};
  if (op == "silu") return {A::eltwise_swish, 1};
  if (op == "hardswish") return {A::eltwise_hardswish};
  if (op == "relu6") return {A::eltwise_clip, 0, 6};
  if (op == "sigmoid") return {A::eltwise_logistic};
  if (op == "leaky_relu")
    return {A::eltwise_relu, static_cast<float>(LeakyReluAttrs(attrs).negative_slope)};
  return {};
}

}  // namespace

dnnl::primitive_attr Epilogue::attributes(bool adds, bool last) const {
  dnnl::primitive_attr attributes = user_scratch();
  dnnl::post_ops steps;
  if (adds) steps.append_sum(1.0f);
  if (last && activation)
    steps.append_eltwise(1.0f, activation.algorithm, activation.alpha, activation.beta);
  attributes.set_post_ops(steps);
  return attributes;
}

void Epilogue::begin(Program& program, const Layout& result) const {
  if (residual < 0) return;
  const int64_t bytes = storage_bytes(result.dtype, result.size());
  const auto operand = static_cast<size_t>(residual);
  program.add({operand},
              [bytes, operand](const RunContext&, void* const* operands, void* const* results) {
                if (operands[operand] != results[0])
                  parallel_copy(results[0], operands[operand], bytes);
              });
}

std::optional<LoopFunction> loop_function(const FusedStep* activation, int64_t channels) {
  LoopFunction out;
  if (!activation) return out;
  if (activation->op->name() == "relu") {
    out.least = 0;
    return out;
  }
  const Layout pixel = Layout::contiguous(DType::kF32, {channels});
  const auto kernel = prepare_kernel(
      {*activation->op, activation->attrs, std::span(&pixel, 1), std::span(&pixel, 1)});
  auto step = kernel ? cpu::map_step(*kernel) : std::nullopt;
  if (!step || step->operands != std::vector{DType::kF32} || step->result != DType::kF32)
    return std::nullopt;
  out.step = std::move(*step);
  return out;
}

bool takes_along(std::span<const GroupMember> group, const GroupMember& next, DType dtype) {
  if (!supports(dtype) || !beginning(group[0].op->name())) return false;
  const bool summed = group.size() == 2 && group[1].op->name() == "add";
  if (next.op->name() == "add") {
    // The sum is taken in the result's memory, which must be in the layout that is computed in.
    const int format = group[0].op->attr_index("data_format");
    const bool own_layout =
        format >= 0 && !(*group[0].attrs)[static_cast<size_t>(format)].as_string().ends_with('C');
    return group.size() == 1 && !own_layout;
  }
  return (group.size() == 1 || summed) &&
         static_cast<bool>(activation(next.op->name(), *next.attrs));
}

std::unique_ptr<Kernel> prepare_with_epilogue(const FusedRequest& request) {
  const FusedStep& first = request.steps[0];
  const Prepare prepare = beginning(first.op->name());
  const int operand_count = static_cast<int>(request.operands.size());
  const int last = operand_count + static_cast<int>(request.steps.size()) - 1;
  if (!prepare || request.results.size() != 1 || request.result_values[0] != last) return nullptr;
  OperandPlaces at{};
  std::vector<Layout> operands;
  for (size_t i = 0; i < first.inputs.size() && i < at.size(); ++i) {
    const int input = first.inputs[i];
    if (input >= operand_count) return nullptr;
    operands.emplace_back().present = false;
    if (input < 0) continue;
    at[i] = static_cast<size_t>(input);
    operands.back() = request.operands[at[i]];
  }
  Epilogue epilogue;
  for (size_t i = 1; i < request.steps.size(); ++i) {
    const FusedStep& step = request.steps[i];
    const int before = operand_count + static_cast<int>(i) - 1;
    if (step.op->name() == "add" && i == 1) {
      const bool on_left = step.inputs[0] == before;
      epilogue.residual = step.inputs[on_left ? 1 : 0];
      if (step.inputs[on_left ? 0 : 1] != before || epilogue.residual >= operand_count)
        return nullptr;
      const Layout& added = request.operands[static_cast<size_t>(epilogue.residual)];
      if (added.dtype != request.results[0].dtype || added.shape != request.results[0].shape ||
          !added.is_contiguous())
        return nullptr;
      continue;
    }
    epilogue.activation = activation(step.op->name(), step.attrs);
    epilogue.function = &step;
    if (!epilogue.activation || step.inputs[0] != before || i + 1 != request.steps.size())
      return nullptr;
  }
  return prepare({.op = *first.op,
                  .attrs = first.attrs,
                  .operands = operands,
                  .results = request.results,
                  .winograd = request.winograd,
                  .once = request.once},
                 at, epilogue);
}

}  // namespace paddle::onednn
