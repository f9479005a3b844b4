#include "onnx/validity/value_types.h"

#include <algorithm>
#include <string_view>

namespace paddle::onnx {

using formats::onnx::Attribute;
using formats::onnx::Node;
using formats::onnx::ValueType;
using KnownValues = std::vector<KnownValue>;

namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

TypeSet numbered_type(const Node& node, std::string_view attribute, std::optional<DType> fallback) {
  if (const Attribute* given = node.find(attribute)) {
    const auto dtype = formats::onnx::dtype_of_number(given->i);
    return dtype ? tensor_type(*dtype) : 0;
  }
  return fallback ? tensor_type(*fallback) : 0;
}

TypeSet constant_type(const Node& node) {
  for (const Attribute& each : node.attributes) {
    if (each.name == "value" && !each.tensors.empty()) return tensor_type(each.tensors[0].dtype);
    if (each.name == "sparse_value" && each.sparse) return tensor_type(each.sparse->values.dtype);
    if (each.name.starts_with("value_float")) return tensor_type(DType::kF32);
    if (each.name.starts_with("value_int")) return tensor_type(DType::kI64);
    if (each.name.starts_with("value_string")) return tensor_type(DType::kString);
  }
  return 0;
}

TypeSet element_of(TypeSet sequence) {
  return sequence >> kDTypeCount & ((TypeSet{1} << kDTypeCount) - 1);
}

TypeSet sequence_of(TypeSet tensor) {
  return tensor < (TypeSet{1} << kDTypeCount) ? tensor << kDTypeCount : 0;
}

std::optional<int64_t> rank_of(const KnownValues& inputs, size_t i) {
  return i < inputs.size() ? inputs[i].rank : std::nullopt;
}

/// The number of elements of a constant list.
std::optional<int64_t> constant_length(const KnownValues& inputs, size_t i) {
  if (i >= inputs.size() || !inputs[i].constant || inputs[i].constant->shape.size() != 1)
    return std::nullopt;
  return inputs[i].constant->shape[0];
}

int64_t integer_of(const Node& node, std::string_view name, int64_t fallback) {
  const Attribute* found = node.find(name);
  return found ? found->i : fallback;
}

std::optional<int64_t> largest_rank(const KnownValues& inputs) {
  int64_t out = 0;
  for (const KnownValue& each : inputs) {
    if (!each.rank) return std::nullopt;
    out = std::max(out, *each.rank);
  }
  return out;
}

/// Operators whose first result has the rank of their first operand.
bool keeps_rank(const Node& node) {
  return is_one_of(node.op_type, {"Abs",
                                  "Acos",
                                  "Acosh",
                                  "Asin",
                                  "Asinh",
                                  "Atan",
                                  "Atanh",
                                  "AveragePool",
                                  "BatchNormalization",
                                  "Bernoulli",
                                  "Cast",
                                  "CastLike",
                                  "Ceil",
                                  "Celu",
                                  "Clip",
                                  "Concat",
                                  "Conv",
                                  "ConvInteger",
                                  "ConvTranspose",
                                  "Cos",
                                  "Cosh",
                                  "CumSum",
                                  "DepthToSpace",
                                  "DequantizeLinear",
                                  "Dropout",
                                  "DynamicQuantizeLinear",
                                  "Elu",
                                  "Erf",
                                  "Exp",
                                  "Floor",
                                  "GatherElements",
                                  "Gelu",
                                  "GlobalAveragePool",
                                  "GlobalMaxPool",
                                  "GroupNormalization",
                                  "HardSigmoid",
                                  "HardSwish",
                                  "Hardmax",
                                  "Identity",
                                  "InstanceNormalization",
                                  "IsInf",
                                  "IsNaN",
                                  "LRN",
                                  "LayerNormalization",
                                  "LeakyRelu",
                                  "Log",
                                  "LogSoftmax",
                                  "LpNormalization",
                                  "LpPool",
                                  "MaxPool",
                                  "Mish",
                                  "Neg",
                                  "Not",
                                  "PRelu",
                                  "Pad",
                                  "QLinearConv",
                                  "QuantizeLinear",
                                  "RMSNormalization",
                                  "Reciprocal",
                                  "Relu",
                                  "Resize",
                                  "ReverseSequence",
                                  "Round",
                                  "Scan",
                                  "ScatterElements",
                                  "ScatterND",
                                  "Selu",
                                  "Shrink",
                                  "Sigmoid",
                                  "Sign",
                                  "Sin",
                                  "Sinh",
                                  "Slice",
                                  "Softmax",
                                  "Softplus",
                                  "Softsign",
                                  "SpaceToDepth",
                                  "Split",
                                  "Sqrt",
                                  "Swish",
                                  "Tan",
                                  "Tanh",
                                  "ThresholdedRelu",
                                  "Tile",
                                  "TopK",
                                  "Transpose",
                                  "Trilu"});
}

bool broadcasts(const Node& node) {
  return is_one_of(node.op_type,
                   {"Add",        "And",         "BitShift", "BitwiseAnd", "BitwiseOr",
                    "BitwiseXor", "Div",         "Equal",    "Greater",    "GreaterOrEqual",
                    "Less",       "LessOrEqual", "Max",      "Mean",       "Min",
                    "Mod",        "Mul",         "Or",       "Pow",        "Sub",
                    "Sum",        "Where",       "Xor"});
}

std::optional<int64_t> reduced_rank(const Node& node, const KnownValues& inputs) {
  const auto rank = rank_of(inputs, 0);
  if (!rank || integer_of(node, "keepdims", 1) != 0) return rank;
  if (is_one_of(node.op_type, {"ArgMax", "ArgMin"})) return *rank - 1;
  if (const Attribute* axes = node.find("axes"))
    return *rank - static_cast<int64_t>(axes->ints.size());
  if (inputs.size() < 2) return integer_of(node, "noop_with_empty_axes", 0) != 0 ? *rank : 0;
  const auto count = constant_length(inputs, 1);
  return count ? std::optional(*rank - *count) : std::nullopt;
}

std::optional<int64_t> matmul_rank(const KnownValues& inputs) {
  const auto a = rank_of(inputs, 0), b = rank_of(inputs, 1);
  if (!a || !b) return std::nullopt;
  return std::max<int64_t>(std::max(*a, *b) - (*a == 1 ? 1 : 0) - (*b == 1 ? 1 : 0), 0);
}

bool reduces(const Node& node) {
  return node.op_type.starts_with("Reduce") || is_one_of(node.op_type, {"ArgMax", "ArgMin"});
}

}  // namespace

KnownValue known_value(const ValueType& type) {
  KnownValue out;
  if (type.kind == ValueType::Kind::kTensor) {
    if (type.dtype) out.type = tensor_type(*type.dtype);
    if (type.shape) out.rank = static_cast<int64_t>(type.shape->size());
  } else if (type.kind == ValueType::Kind::kSequence && type.element && type.element->dtype) {
    out.type = sequence_type(*type.element->dtype);
  } else if (type.kind != ValueType::Kind::kUnknown) {
    out.type = kOtherType;
  }
  return out;
}

KnownValue known_value(const formats::onnx::TensorData& tensor) {
  return {tensor_type(tensor.dtype), static_cast<int64_t>(tensor.shape.size()), &tensor};
}

TypeSet result_type(const Node& node, const KnownValues& inputs) {
  const std::string& op = node.op_type;
  const TypeSet first = inputs.empty() ? 0 : inputs[0].type;
  if (op == "Cast") return numbered_type(node, "to", std::nullopt);
  if (op == "Constant") return constant_type(node);
  if (op == "ConstantOfShape") {
    const TypeSet given = constant_type(node);
    return given != 0 ? given : tensor_type(DType::kF32);
  }
  if (is_one_of(op, {"EyeLike", "RandomNormalLike", "RandomUniformLike", "Bernoulli"})) {
    const TypeSet given = numbered_type(node, "dtype", std::nullopt);
    return given != 0 ? given : first;
  }
  if (is_one_of(op, {"RandomNormal", "RandomUniform"}))
    return numbered_type(node, "dtype", DType::kF32);
  if (op == "Multinomial") return numbered_type(node, "dtype", DType::kI32);
  if (op == "QuantizeLinear") return numbered_type(node, "output_dtype", DType::kU8);
  if (op == "DequantizeLinear") {
    const TypeSet given = numbered_type(node, "output_dtype", std::nullopt);
    return given != 0 ? given : inputs.size() > 1 ? inputs[1].type : 0;
  }
  if (is_one_of(op, {"MelWeightMatrix", "HannWindow", "HammingWindow", "BlackmanWindow"}))
    return numbered_type(node, "output_datatype", DType::kF32);
  if (op == "SequenceEmpty") return sequence_of(numbered_type(node, "dtype", DType::kF32));
  if (is_one_of(op, {"SplitToSequence", "SequenceConstruct"})) return sequence_of(first);
  if (is_one_of(op, {"SequenceAt", "ConcatFromSequence"})) return element_of(first);
  return 0;
}

std::optional<int64_t> result_rank(const Node& node, const KnownValues& inputs, size_t output) {
  if (node.op_type == "Split" || (node.op_type == "TopK" && output < 2)) return rank_of(inputs, 0);
  if (node.op_type == "DynamicQuantizeLinear" && output > 0) return 0;
  if (output > 0) return std::nullopt;
  if (keeps_rank(node) && node.op_type != "Scan") return rank_of(inputs, 0);
  if (broadcasts(node)) return largest_rank(inputs);
  if (reduces(node)) return reduced_rank(node, inputs);
  const std::string& op = node.op_type;
  if (is_one_of(op, {"MatMul", "MatMulInteger", "QLinearMatMul"}))
    return op == "QLinearMatMul" ? std::nullopt : matmul_rank(inputs);
  if (is_one_of(op, {"Gemm", "Flatten", "NonZero", "NonMaxSuppression"})) return 2;
  if (is_one_of(op, {"Shape", "Range", "Compress"}))
    return op == "Compress" && node.find("axis") ? rank_of(inputs, 0) : std::optional<int64_t>(1);
  if (op == "Size") return 0;
  if (op == "Reshape" || op == "Expand" || op == "ConstantOfShape") {
    const auto length = constant_length(inputs, op == "ConstantOfShape" ? 0 : 1);
    if (op != "Expand") return length;
    const auto rank = rank_of(inputs, 0);
    return length && rank ? std::optional(std::max(*length, *rank)) : std::nullopt;
  }
  const auto rank = rank_of(inputs, 0);
  if (op == "Squeeze" || op == "Unsqueeze") {
    const auto count = constant_length(inputs, 1);
    if (!rank || !count) return std::nullopt;
    return op == "Squeeze" ? *rank - *count : *rank + *count;
  }
  if (op == "Gather" && rank && rank_of(inputs, 1)) return *rank + *rank_of(inputs, 1) - 1;
  if (op == "OneHot" && rank) return *rank + 1;
  if (is_one_of(op, {"LSTM", "GRU", "RNN"})) return 4;
  return std::nullopt;
}

std::string rank_problem(const Node& node, const KnownValues& inputs) {
  const auto rank = rank_of(inputs, 0);
  const std::string& op = node.op_type;
  if (op == "Gemm")
    for (size_t i = 0; i < 2; ++i)
      if (const auto r = rank_of(inputs, i); r && *r != 2)
        return str("input ", i, " has ", *r, " axes, expected 2");
  if (!rank) return "";
  if (op == "Transpose") {
    const Attribute* order = node.find("perm");
    if (!order) return "";
    std::vector<int64_t> sorted = order->ints;
    std::ranges::sort(sorted);
    for (size_t i = 0; i < sorted.size(); ++i)
      if (sorted[i] != static_cast<int64_t>(i))
        return str("'perm' is ", str(order->ints), ", not an order of the axes from 0 on");
    if (static_cast<int64_t>(sorted.size()) != *rank)
      return str("'perm' has ", sorted.size(), " axes, its operand ", *rank);
  }
  const bool spatial =
      is_one_of(op, {"Conv", "ConvInteger", "ConvTranspose", "AveragePool", "MaxPool", "LpPool",
                     "GlobalAveragePool", "GlobalMaxPool", "InstanceNormalization"});
  if (spatial && *rank < 3) return str("its operand has ", *rank, " axes, expected 3 or more");
  if (op == "Conv" || op == "ConvTranspose") {
    const auto weights = rank_of(inputs, 1);
    if (weights && *weights != *rank)
      return str("its operand has ", *rank, " axes, its filter ", *weights);
  }
  if (is_one_of(op, {"LSTM", "GRU", "RNN"}) && *rank != 3)
    return str("its operand has ", *rank, " axes, expected 3");
  // Softmax and others count their axis in the first operand.
  const bool along_axis =
      is_one_of(op, {"Softmax", "LogSoftmax", "Hardmax", "Concat", "Gather", "GatherElements",
                     "ArgMax", "ArgMin", "Split", "TopK", "ScatterElements", "LayerNormalization"});
  if (along_axis) {
    const int64_t fallback =
        is_one_of(op, {"Softmax", "LogSoftmax", "Hardmax", "TopK", "LayerNormalization"}) ? -1 : 0;
    const int64_t axis = integer_of(node, "axis", fallback);
    if (axis < -*rank || axis >= *rank)
      return str("the axis ", axis, " is out of range for ", *rank, " axes");
  }
  return "";
}

}  // namespace paddle::onnx
