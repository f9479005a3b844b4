#include "onnx/graph/string_passthrough.h"

#include <algorithm>

#include "base/limits.h"

namespace paddle::onnx {
namespace {

using Items = std::vector<std::string>;

/// Which outputs are strings.
enum class StringOutputs : uint8_t { kAll, kFirst, kNone };

struct Passthrough {
  std::string_view name;
  StringOutputs outputs = StringOutputs::kAll;
};

constexpr Passthrough kPassthroughs[] = {
    {"ArrayFeatureExtractor"},
    {"Compress"},
    {"Concat"},
    {"DepthToSpace"},
    {"Equal", StringOutputs::kNone},
    {"Expand"},
    {"Flatten"},
    {"Gather"},
    {"GatherElements"},
    {"GatherND"},
    {"OneHot"},
    {"Reshape"},
    {"ReverseSequence"},
    {"Scatter"},
    {"ScatterElements"},
    {"ScatterND"},
    {"Shape", StringOutputs::kNone},
    {"Size", StringOutputs::kNone},
    {"Slice"},
    {"SpaceToDepth"},
    {"Split"},
    {"Squeeze"},
    {"Tile"},
    {"Transpose"},
    {"Unique", StringOutputs::kFirst},
    {"Unsqueeze"},
    {"Where"},
};

bool are_strings(const Value& v) { return v.kind() == Value::Kind::kStrings; }

const Passthrough* find_passthrough(const std::string& name) {
  const auto* const found = std::ranges::find(kPassthroughs, name, &Passthrough::name);
  return found == std::end(kPassthroughs) ? nullptr : found;
}

/// Sorted distinct strings of all inputs.
Items sorted_distinct(const Values& inputs) {
  Items out;
  for (const Value& v : inputs)
    if (are_strings(v)) out.insert(out.end(), v.strings().items.begin(), v.strings().items.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Value to_ranks(const StringArray& strings, const Items& all) {
  Array out = Array::empty(DType::kI64, strings.shape);
  for (size_t i = 0; i < strings.items.size(); ++i)
    out.data<int64_t>()[i] = std::ranges::lower_bound(all, strings.items[i]) - all.begin();
  return Value(Tensor(out));
}

Value to_strings(const Value& ranks, const Items& all) {
  if (!ranks.is_concrete())
    throw DataDependentError(ErrorCode::kModel, "the resulting strings depend on the data");
  const Array from = ranks.tensor().array().contiguous();
  if (from.size() > limits().memory / 64)
    fail(ErrorCode::kModel, "it returns more strings than fit into memory");
  Items out;
  out.reserve(static_cast<size_t>(from.size()));
  for (int64_t i = 0; i < from.size(); ++i)
    out.push_back(all.at(static_cast<size_t>(from.data<int64_t>()[i])));
  return Value::of_strings(from.shape, std::move(out));
}

}  // namespace

bool is_string_passthrough(const formats::onnx::Node& node, const Values& inputs) {
  return std::ranges::any_of(inputs, are_strings) &&
         (node.domain.empty() || node.domain == "ai.onnx.ml") && find_passthrough(node.op_type);
}

Values run_string_passthrough(const Operator& op, const formats::onnx::Node& node, int64_t opset,
                              const Values& inputs, Evaluator& evaluator, const Scope& scope) {
  const Items all = sorted_distinct(inputs);
  Values ranks;
  for (const Value& v : inputs) ranks.push_back(are_strings(v) ? to_ranks(v.strings(), all) : v);
  NodeCall call(node, opset, ranks, evaluator, scope);
  Values outputs = op.rule(call);
  const StringOutputs which = find_passthrough(node.op_type)->outputs;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (which == StringOutputs::kAll || (which == StringOutputs::kFirst && i == 0))
      outputs[i] = to_strings(outputs[i], all);
  return outputs;
}

}  // namespace paddle::onnx
