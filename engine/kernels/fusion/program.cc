#include "kernels/fusion/program.h"

#include <algorithm>
#include <map>

#include "kernels/elementwise/elementwise.h"

namespace paddle::cpu {
namespace {

constexpr size_t kMaxInputs = 4;

class Builder {
 public:
  explicit Builder(const FusedRequest& request) : request_(request) {
    for (const Layout& operand : request.operands) types_.push_back(operand.dtype);
  }

  std::optional<FusionProgram> build() {
    if (request_.results.empty()) return std::nullopt;
    for (size_t i = 0; i < request_.steps.size(); ++i)
      if (!add_step(i)) return std::nullopt;
    for (size_t r = 0; r < request_.result_values.size(); ++r)
      if (!add_result(static_cast<int>(r))) return std::nullopt;
    return std::move(program_);
  }

 private:
  bool is_operand(int value) const { return static_cast<size_t>(value) < request_.operands.size(); }
  DType declared_type(int value) const {
    const size_t n = static_cast<size_t>(value), operands = request_.operands.size();
    return n < operands ? request_.operands[n].dtype : request_.steps[n - operands].result;
  }

  /// The node of a value in this type, reading or converting it if needed.
  int read_or_convert(int value, DType type) {
    if (const auto it = nodes_by_value_.find({value, type}); it != nodes_by_value_.end())
      return it->second;
    FusionNode node;
    node.type = type;
    if (is_operand(value)) {
      node.operand = value;
    } else {
      node.kind = FusionNode::Kind::kConvert;
      node.inputs = {nodes_by_value_.at({value, types_[static_cast<size_t>(value)]})};
    }
    return add(value, std::move(node));
  }

  int add(int value, FusionNode node) {
    const int index = static_cast<int>(program_.nodes.size());
    nodes_by_value_[{value, node.type}] = index;
    program_.nodes.push_back(std::move(node));
    return index;
  }

  bool add_step(size_t index) {
    const FusedStep& step = request_.steps[index];
    const int value = static_cast<int>(request_.operands.size() + index);
    const std::string_view name = step.op->name();
    if (step.op->has(kReduction)) {
      types_.push_back(step.result);
      return true;  // unused results are not computed
    }
    if (!step.op->has(kElementwise)) return false;
    if (step.inputs.size() > kMaxInputs || step.inputs.empty()) return false;
    for (const int input : step.inputs)
      if (input < 0 || producer_with_trait(input, kReduction)) return false;
    if (name == "cast" || name == "assign") {
      // Converts from the operand's declared type where an earlier step holds it in another type
      // and the result is not wider.
      const int input = step.inputs[0];
      const DType from = types_[static_cast<size_t>(input)];
      if (!info(from).has_kernels || !info(step.result).has_kernels) return false;
      nodes_by_value_[{value, step.result}] = read_or_convert(input, step.result);
      types_.push_back(step.result);
      program_.cost += 1;
      return true;
    }
    // Preparing the kernel for a small contiguous block tells which loop it uses.
    std::vector<Layout> operands;
    for (const int input : step.inputs)
      operands.push_back(Layout::contiguous(declared_type(input), {64}));
    const Layout result = Layout::contiguous(step.result, {64});
    const auto kernel = prepare_kernel({*step.op, step.attrs, operands, std::span(&result, 1)});
    if (!kernel) return false;
    auto map = elementwise_step(*kernel);
    if (!map || map->operands.size() != step.inputs.size()) return false;
    FusionNode node;
    node.kind = FusionNode::Kind::kApply;
    node.type = map->result;
    for (size_t i = 0; i < step.inputs.size(); ++i)
      node.inputs.push_back(read_or_convert(step.inputs[i], map->operands[i]));
    program_.cost += map->cost;
    types_.push_back(map->result);
    node.step = std::move(*map);
    add(value, std::move(node));
    return true;
  }

  /// The step that produces a value, if it has this trait.
  const FusedStep* producer_with_trait(int value, Trait trait) const {
    if (is_operand(value)) return nullptr;
    const FusedStep& step = request_.steps[static_cast<size_t>(value) - request_.operands.size()];
    return step.op->has(trait) ? &step : nullptr;
  }

  bool add_result(int result) {
    const int value = request_.result_values[static_cast<size_t>(result)];
    const FusedStep* const step = producer_with_trait(value, kReduction);
    if (!step) {
      program_.stores.push_back(
          {read_or_convert(value, types_[static_cast<size_t>(value)]), result});
      return true;
    }
    auto call = reduce_call(*step->op, step->attrs, request_.shape.size());
    const int input = step->inputs[0];
    if (!call || call->form == ReduceForm::kLogSumExp || step->inputs.size() != 1 || input < 0 ||
        producer_with_trait(input, kReduction) || !is_float(declared_type(input)) ||
        !is_float(step->result))
      return false;
    std::sort(call->axes.begin(), call->axes.end());
    auto& others = program_.reductions;
    if (others.size() == kMaxFusionReductions ||
        (!others.empty() && others[0].call.axes != call->axes))
      return false;
    const DType type = compute_type(declared_type(input));
    others.push_back({read_or_convert(input, type), result, std::move(*call), type, step->result});
    program_.cost += 1;
    return true;
  }

  const FusedRequest& request_;
  FusionProgram program_;
  std::map<std::pair<int, DType>, int> nodes_by_value_;
  std::vector<DType> types_;  ///< by value: the type it is computed in
};

}  // namespace

std::optional<FusionProgram> build_fusion_program(const FusedRequest& request) {
  return Builder(request).build();
}

}  // namespace paddle::cpu
