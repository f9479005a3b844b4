#include "kernels/onednn/epilogue.h"

#include "kernels/conv/conv.h"
#include "kernels/linalg/matmul.h"
#include "kernels/onednn/post_ops.h"

namespace paddle::onednn {
namespace {

using Prepare = std::unique_ptr<Kernel> (*)(const KernelRequest&, const OperandIndices&,
                                            const Epilogue&);

/// The kernel of an operation that takes an epilogue; null for other operations.
Prepare prepare_function(std::string_view op) {
  if (op == "conv2d" || op == "conv3d") return &convolution_with_epilogue;
  if (op == "matmul") return &matmul_with_epilogue;
  if (op == "linear") return &linear_with_epilogue;
  return nullptr;
}

}  // namespace

bool can_fuse_epilogue(const TargetInfo&, std::span<const FusionMember> group,
                       const FusionMember& next, DType dtype) {
  if (!supports(dtype) || !prepare_function(group[0].op->name())) return false;
  const bool has_residual = group.size() == 2 && group[1].op->name() == "add";
  if (next.op->name() == "add") {
    // The sum accumulates in the result's memory, so the primitive must compute in its layout.
    const int format = group[0].op->attr_index("data_format");
    const bool channels_first =
        format >= 0 && !(*group[0].attrs)[static_cast<size_t>(format)].as_string().ends_with('C');
    return group.size() == 1 && !channels_first;
  }
  return (group.size() == 1 || has_residual) &&
         static_cast<bool>(eltwise_post_op(*next.op, *next.attrs));
}

std::unique_ptr<Kernel> prepare_with_epilogue(const FusedRequest& request) {
  const FusedStep& first = request.steps[0];
  const Prepare prepare = prepare_function(first.op->name());
  const int operand_count = static_cast<int>(request.operands.size());
  const int last = operand_count + static_cast<int>(request.steps.size()) - 1;
  if (!prepare || request.results.size() != 1 || request.result_values[0] != last) return nullptr;
  OperandIndices at{};
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
    const int previous = operand_count + static_cast<int>(i) - 1;
    if (step.op->name() == "add" && i == 1) {
      const bool on_left = step.inputs[0] == previous;
      epilogue.residual = step.inputs[on_left ? 1 : 0];
      if (step.inputs[on_left ? 0 : 1] != previous || epilogue.residual >= operand_count)
        return nullptr;
      const Layout& residual = request.operands[static_cast<size_t>(epilogue.residual)];
      if (residual.dtype != request.results[0].dtype ||
          residual.shape != request.results[0].shape || !residual.is_contiguous())
        return nullptr;
      continue;
    }
    epilogue.activation = &step;
    if (!eltwise_post_op(*step.op, step.attrs) || step.inputs[0] != previous ||
        i + 1 != request.steps.size())
      return nullptr;
  }
  return prepare({.op = *first.op,
                  .attrs = first.attrs,
                  .operands = operands,
                  .results = request.results,
                  .target = request.target,
                  .prepare = request.prepare},
                 at, epilogue);
}

}  // namespace paddle::onednn
