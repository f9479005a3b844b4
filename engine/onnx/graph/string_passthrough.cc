#include "onnx/graph/string_passthrough.h"

#include <algorithm>

#include "base/limits.h"

namespace paddle::onnx {
namespace {

using Items = std::vector<std::string>;

/// Which of their outputs are strings again.
enum class Strings : uint8_t { kAll, kFirst, kNone };

struct Mover {
  std::string_view name;
  Strings outputs = Strings::kAll;
};

constexpr Mover kMovers[] = {
    {"ArrayFeatureExtractor"},
    {"Compress"},
    {"Concat"},
    {"DepthToSpace"},
    {"Equal", Strings::kNone},
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
    {"Shape", Strings::kNone},
    {"Size", Strings::kNone},
    {"Slice"},
    {"SpaceToDepth"},
    {"Split"},
    {"Squeeze"},
    {"Tile"},
    {"Transpose"},
    {"Unique", Strings::kFirst},
    {"Unsqueeze"},
    {"Where"},
};

bool are_strings(const Value& v) { return v.kind() == Value::Kind::kStrings; }

const Mover* mover(const std::string& name) {
  const auto* const found = std::ranges::find(kMovers, name, &Mover::name);
  return found == std::end(kMovers) ? nullptr : found;
}

/// All strings of the inputs once, in their order.
Items distinct_of(const Values& inputs) {
  Items out;
  for (const Value& v : inputs)
    if (are_strings(v)) out.insert(out.end(), v.strings().items.begin(), v.strings().items.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Value as_places(const StringArray& strings, const Items& all) {
  Array out = Array::empty(DType::kI64, strings.shape);
  for (size_t i = 0; i < strings.items.size(); ++i)
    out.data<int64_t>()[i] = std::ranges::lower_bound(all, strings.items[i]) - all.begin();
  return Value(Tensor(out));
}

Value as_strings(const Value& places, const Items& all) {
  if (!places.is_known())
    throw NeedsValue(ErrorCode::kModel, "which strings it gives is not known");
  const Array from = places.tensor().array().contiguous();
  if (from.size() > limits().memory / 64)
    fail(ErrorCode::kModel, "it gives more strings than the memory holds");
  Items out;
  out.reserve(static_cast<size_t>(from.size()));
  for (int64_t i = 0; i < from.size(); ++i)
    out.push_back(all.at(static_cast<size_t>(from.data<int64_t>()[i])));
  return Value::of_strings(from.shape, std::move(out));
}

}  // namespace

bool moves_strings(const formats::onnx::Node& node, const Values& inputs) {
  return std::ranges::any_of(inputs, are_strings) &&
         (node.domain.empty() || node.domain == "ai.onnx.ml") && mover(node.op_type);
}

Values move_strings(const Operator& op, const formats::onnx::Node& node, int64_t opset,
                    const Values& inputs, Evaluator& evaluator, const Scope& scope) {
  const Items all = distinct_of(inputs);
  Values places;
  for (const Value& v : inputs) places.push_back(are_strings(v) ? as_places(v.strings(), all) : v);
  NodeCall call(node, opset, places, evaluator, scope);
  Values outputs = op.rule(call);
  const Strings which = mover(node.op_type)->outputs;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (which == Strings::kAll || (which == Strings::kFirst && i == 0))
      outputs[i] = as_strings(outputs[i], all);
  return outputs;
}

}  // namespace paddle::onnx
