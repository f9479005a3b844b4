#include "onnx/operators.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "base/limits.h"
#include "onnx/evaluator.h"
#include "onnx/ml.h"

namespace paddle::onnx {
namespace {

/// Entries of one domain by name.
using Table = std::unordered_map<std::string_view, std::vector<const Operator*>>;

void add(Table& table, std::span<const Operator> operators) {
  for (const Operator& op : operators) table[op.name].push_back(&op);
}

const std::map<std::string, Table>& tables() {
  static const auto* const kTables = [] {
    auto* all = new std::map<std::string, Table>;
    Table& main = (*all)[""];
    for (const auto family : {elementwise_operators,  activation_operators,
                              cast_operators,         reduction_operators,
                              ordering_operators,     shape_operators,
                              join_operators,         indexing_operators,
                              creation_operators,     product_operators,
                              convolution_operators,  pooling_operators,
                              norm_operators,         recurrent_operators,
                              attention_operators,    linear_attention_operators,
                              quantization_operators, image_operators,
                              early_operators,        resize_operators,
                              decode_operators,       detection_operators,
                              signal_operators,       loss_operators,
                              control_operators,      sequence_operators,
                              string_operators})
      add(main, family());
    add((*all)["ai.onnx.preview.training"], training_operators());
    add((*all)["ai.onnx.preview"], preview_operators());
    for (const auto family : {ml_feature_operators, ml_label_operators, ml_linear_operators,
                              ml_svm_operators, ml_tree_operators})
      add((*all)["ai.onnx.ml"], family());
    for (const auto family :
         {microsoft_operators, microsoft_attention_operators, microsoft_convolution_operators,
          microsoft_delta_operators, microsoft_packed_operators, microsoft_expert_operators,
          microsoft_gate_operators, microsoft_image_operators, microsoft_quantized_operators,
          microsoft_ngram_operators, microsoft_search_operators, microsoft_token_operators})
      add((*all)["com.microsoft"], family());
    add((*all)["com.microsoft.nchwc"], microsoft_blocked_operators());
    return all;
  }();
  return *kTables;
}

/// `opset` becomes that of the form in which the operator is found.
const Operator* lookup(const formats::onnx::Node& node, int64_t& opset) {
  const auto table = tables().find(node.domain);
  if (table == tables().end()) return nullptr;
  auto found = table->second.find(node.op_type);
  if (found == table->second.end()) {
    // com.microsoft has newer forms of ONNX's own operators under their names.
    if (node.domain != "com.microsoft") return nullptr;
    const Table& main = tables().at("");
    found = main.find(node.op_type);
    if (found == main.end()) return nullptr;
    opset = kNewestOpset;
  }
  const Operator* best = nullptr;
  for (const Operator* op : found->second)
    if (op->since <= opset && (!best || op->since > best->since)) best = op;
  return best;
}

}  // namespace

bool is_known_operator(const formats::onnx::Node& node, int64_t opset) {
  return lookup(node, opset) != nullptr;
}

const Operator& find_operator(const formats::onnx::Node& node, int64_t& opset) {
  if (const Operator* op = lookup(node, opset)) return *op;
  std::vector<std::string> names;
  for (const auto& [domain, table] : tables())
    for (const auto& entry : table)
      names.push_back(domain.empty() ? std::string(entry.first) : str(domain, ".", entry.first));
  const std::string type = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
  fail(ErrorCode::kModel, "node '", node.name, "' has the unknown operator ", type, " of opset ",
       opset, did_you_mean(type, names));
}

Tensor scalar(double value, DType dtype) { return ops::full(Shape(), value, dtype); }

Tensor integer_scalar(int64_t value, DType dtype) { return ops::full(Shape(), value, dtype); }

Tensor count_up(const Dim& n) {
  return ops::arange(AttrValue(0), AttrValue(n), AttrValue(1), DType::kI64);
}

std::pair<double, double> range_of(DType dtype) {
  const int bits = info(dtype).bits;
  if (info(dtype).kind == DTypeKind::kUnsigned) return {0, std::ldexp(1.0, bits) - 1};
  return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
}

Tensor integer_vector(const std::vector<int64_t>& values, DType dtype) {
  return Tensor(Array::from(values, {static_cast<int64_t>(values.size())}).cast(dtype));
}

int64_t known_size(const Tensor& x, int64_t axis) {
  const Dim& d = x.dim(axis);
  if (!d.is_constant()) throw NeedsValue(ErrorCode::kModel, str("the size ", d, " must be known"));
  return d.value();
}

Dims known_shape(const Tensor& x) {
  Dims out;
  for (int64_t i = 0; i < x.ndim(); ++i) out.push_back(known_size(x, i));
  return out;
}

Tensor part(const Tensor& x, int64_t axis, const Dim& start, const Dim& end, int64_t step) {
  return ops::strided_slice(x, {axis}, {start}, {end}, {step});
}

std::vector<int64_t> first_axes(int64_t n) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < n; ++i) axes.push_back(i);
  return axes;
}

Tensor permuted(const Tensor& x, const std::vector<int64_t>& order) {
  return ops::transpose(x, order);
}

int64_t most_places() { return std::min(int64_t{1} << 26, limits().memory / 64); }

}  // namespace paddle::onnx
