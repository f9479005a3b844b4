// LSTM, GRU and RNN: our scan has the products with the inputs behind it, the ONNX operators
// compute them; where the trace still shows that product, its weight becomes W, otherwise W is a
// permutation.

#include <array>

#include "onnx/export/graph_writer.h"

namespace paddle::onnx {
namespace {

using Writer = GraphWriter;

/// Blocks of rows (or elements) in the order of ONNX.
std::string reordered(Writer& w, const std::string& x, const std::vector<int64_t>& order,
                      int64_t hidden, int64_t axis) {
  Names blocks;
  bool sorted = true;
  for (size_t i = 0; i < order.size(); ++i) {
    sorted = sorted && order[i] == static_cast<int64_t>(i);
    blocks.push_back(w.add("Slice", {x, w.ints({order[i] * hidden}),
                                     w.ints({(order[i] + 1) * hidden}), w.ints({axis})}));
  }
  return sorted ? x : w.add("Concat", blocks, {int_attribute("axis", axis)});
}

/// Row r of the result picks the element of the gates that ONNX has at r.
Array permutation_matrix(const std::vector<int64_t>& order, int64_t hidden, DType dtype) {
  const int64_t n = static_cast<int64_t>(order.size()) * hidden;
  std::vector<double> values(static_cast<size_t>(n * n), 0.0);
  for (int64_t row = 0; row < n; ++row) {
    const int64_t column = order[static_cast<size_t>(row / hidden)] * hidden + row % hidden;
    values[static_cast<size_t>(row * n + column)] = 1;
  }
  return Array::from<double>(values, {1, n, n}).cast(dtype);
}

/// The product that made the gates: x times the transpose of `weight`, plus biases.
struct InputProduct {
  std::string x, weight;  ///< weight [gates, features]
  Names biases;           ///< of [gates]
};

std::optional<InputProduct> find_product(Writer& w, const ir::Value* gates, int64_t size) {
  InputProduct out;
  const auto is_bias = [&](const ir::Value* value) {
    return value->type.shape.size() == 1 && value->type.shape[0].constant() == size;
  };
  const ir::Value* value = gates;
  while (value->producer && value->producer->op->name() == "add") {
    const auto& operands = value->producer->operands;
    const size_t bias = is_bias(operands[1]) ? 1 : is_bias(operands[0]) ? 0 : 2;
    if (bias == 2) return std::nullopt;
    out.biases.push_back(w.name_of(*operands[bias]));
    value = operands[1 - bias];
  }
  if (!value->producer) return std::nullopt;
  const ir::Operation& product = *value->producer;
  if (product.operands[0]->type.shape.size() != 3) return std::nullopt;
  if (product.op->name() == "linear") {
    out.x = w.name_of(*product.operands[0]);
    out.weight = w.transpose(w.name_of(*product.operands[1]), {1, 0});
    if (product.operands[2]) out.biases.push_back(w.name_of(*product.operands[2]));
    return out;
  }
  if (product.op->name() != "matmul" || product.operands[1]->type.shape.size() != 2)
    return std::nullopt;
  const auto flag = [&](const char* name) {
    return product.attrs[static_cast<size_t>(product.op->attr_index(name))].as_bool();
  };
  if (flag("transpose_x")) return std::nullopt;
  out.x = w.name_of(*product.operands[0]);
  out.weight = w.name_of(*product.operands[1]);
  if (!flag("transpose_y")) out.weight = w.transpose(out.weight, {1, 0});
  return out;
}

void recurrent_scan(Writer& w) {
  if (w.is_used(3)) w.refuse("what its gradient needs is read");
  const std::string& cell = w.attr("cell").as_string();
  const DType dtype = w.result_type().dtype;
  const Dim& width = w.type("h0").shape.back();
  if (!width.is_constant()) w.refuse("its width is symbolic");
  const int64_t hidden = width.value();
  // Ours: i f g o; r z n. ONNX: i o f c; z r h.
  const std::vector<int64_t> order = cell == "lstm"  ? std::vector<int64_t>{0, 3, 1, 2}
                                     : cell == "gru" ? std::vector<int64_t>{1, 0, 2}
                                                     : std::vector<int64_t>{0};
  const int64_t gates = static_cast<int64_t>(order.size()) * hidden;
  const std::string zero = w.ints({0});
  const auto one_direction = [&](const std::string& x) { return w.add("Unsqueeze", {x, zero}); };
  std::string x, weight, input_bias;
  if (const auto product = find_product(w, w.operand("gates"), gates)) {
    x = product->x;
    weight = one_direction(reordered(w, product->weight, order, hidden, 0));
    for (const std::string& bias : product->biases)
      input_bias = input_bias.empty() ? bias : w.add("Add", {input_bias, bias});
  } else {
    x = w.in("gates");
    weight = w.constant(permutation_matrix(order, hidden, dtype), "gate_order");
  }
  const std::string recurrence = one_direction(reordered(w, w.in("weight"), order, hidden, 0));
  std::string bias;
  if (!input_bias.empty() || w.operand("bias")) {
    const std::string none = w.add("Expand", {w.scalar(0, dtype), w.ints({gates})});
    const std::string first =
        input_bias.empty() ? none : reordered(w, input_bias, order, hidden, 0);
    const std::string second =
        w.operand("bias") ? reordered(w, w.in("bias"), order, hidden, 0) : none;
    bias = one_direction(w.add("Concat", {first, second}, {int_attribute("axis", 0)}));
  }
  Names inputs = {w.transpose(x, {1, 0, 2}), weight, recurrence, bias, "",
                  one_direction(w.in("h0"))};
  ExportAttributes attributes = {
      int_attribute("hidden_size", hidden),
      string_attribute("direction", w.attr("reverse").as_bool() ? "reverse" : "forward")};
  const bool is_lstm = cell == "lstm";
  if (is_lstm) inputs.push_back(one_direction(w.in("c0")));
  if (cell == "gru") attributes.push_back(int_attribute("linear_before_reset", 1));
  if (order.size() == 1) {
    formats::onnx::Attribute activations;
    activations.name = "activations";
    activations.kind = formats::onnx::AttributeKind::kStrings;
    activations.strings = {cell == "relu" ? "Relu" : "Tanh"};
    attributes.push_back(activations);
  }
  const Names out = w.add_several(is_lstm         ? "LSTM"
                                  : cell == "gru" ? "GRU"
                                                  : "RNN",
                                  inputs, is_lstm ? 3 : 2, std::move(attributes));
  // [time, 1, batch, hidden]
  const std::string sequence = w.add("Squeeze", {out[0], w.ints({1})});
  w.result(0, w.transpose(sequence, {1, 0, 2}));
  w.result(1, w.add("Squeeze", {out[1], zero}));
  if (is_lstm)
    w.result(2, w.add("Squeeze", {out[2], zero}));
  else if (w.is_used(2))
    w.result(2, w.in("c0"));
}

}  // namespace

std::vector<ExportRuleEntry> recurrent_export_rules() {
  return {{"recurrent_scan", recurrent_scan}};
}

}  // namespace paddle::onnx
