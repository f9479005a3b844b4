// LSTM, GRU and RNN, and their gradients as Scan. For the operators: our scan has the products with
// the inputs after it, the ONNX operators compute them; where the trace still shows that product,
// its weight becomes W, otherwise W is a permutation.

#include <array>
#include <cstdint>
#include <functional>

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

/// Row r of the matrix picks the element of the gates that ONNX has at r. Made by the graph, since
/// it would be as large as a weight.
std::string permutation_matrix(Writer& w, const std::vector<int64_t>& order, int64_t hidden,
                               DType dtype) {
  std::vector<int64_t> columns;
  for (const int64_t block : order)
    for (int64_t i = 0; i < hidden; ++i) columns.push_back(block * hidden + i);
  const auto size = static_cast<int64_t>(columns.size());
  return w.add("OneHot", {w.ints(columns), w.scalar(static_cast<double>(size), DType::kI64),
                          w.constant(Array::from<double>({0, 1}, {2}).cast(dtype), "zero_one")});
}

/// The product that made the gates: x times the transpose of `weight`, plus biases.
struct InputProduct {
  std::string x, weight;  ///< weight [gates, features]
  Names biases;           ///< of [gates]
  bool steps_first = false;
};

/// Whether an operation swaps the first two of three axes.
bool swaps_steps(const ir::Operation& operation) {
  if (operation.op->name() != "transpose") return false;
  const auto at = static_cast<size_t>(operation.op->attr_index("perm"));
  return operation.attrs[at].as_ints() == std::vector<int64_t>{1, 0, 2};
}

std::optional<InputProduct> find_product(Writer& w, const ir::Value* gates, int64_t size) {
  InputProduct out;
  const auto is_bias = [&](const ir::Value* value) {
    return value->type.shape.size() == 1 && value->type.shape[0].constant() == size;
  };
  const ir::Value* value = gates;
  // The gates of an imported operator are computed with the steps first.
  if (value->producer && swaps_steps(*value->producer)) {
    out.steps_first = true;
    value = value->producer->operands[0];
  }
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

bool is_zero_state(const ir::Value& value) {
  if (value.constant) {
    for (int64_t i = 0; i < value.constant->size(); ++i)
      if (value.constant->number(i) != 0) return false;
    return true;
  }
  if (!value.producer || value.producer->op->name() != "full") return false;
  const auto at = static_cast<size_t>(value.producer->op->attr_index("fill_value"));
  const AttrValue& fill = value.producer->attrs[at];
  return (fill.is_int() ? fill.as_dim().constant() == 0 : fill.as_double() == 0);
}

void recurrent_scan(Writer& w) {
  // Result 3 is for recurrent_scan_grad, which computes it again.
  const std::string& cell = w.attr("cell").as_string();
  const DType dtype = w.result_type().dtype;
  const Dim& width = w.type("h0").shape.back();
  if (!width.is_constant()) w.reject("its width is symbolic");
  const int64_t hidden = width.value();
  // Ours: i f g o; r z n. ONNX: i o f c; z r h.
  const std::vector<int64_t> order = cell == "lstm"  ? std::vector<int64_t>{0, 3, 1, 2}
                                     : cell == "gru" ? std::vector<int64_t>{1, 0, 2}
                                                     : std::vector<int64_t>{0};
  const int64_t gates = static_cast<int64_t>(order.size()) * hidden;
  const std::string zero = w.ints({0});
  const auto one_direction = [&](const std::string& x) { return w.add("Unsqueeze", {x, zero}); };
  std::string x, weight, input_bias;
  bool steps_first = false;
  if (const auto product = find_product(w, w.operand("gates"), gates)) {
    x = product->x;
    steps_first = product->steps_first;
    weight = one_direction(reordered(w, product->weight, order, hidden, 0));
    for (const std::string& bias : product->biases)
      input_bias = input_bias.empty() ? bias : w.add("Add", {input_bias, bias});
  } else {
    x = w.in("gates");
    weight = one_direction(permutation_matrix(w, order, hidden, dtype));
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
  // States that are left out are zeros.
  const auto state = [&](const char* operand) {
    return is_zero_state(*w.operand(operand)) ? "" : one_direction(w.in(operand));
  };
  Names inputs = {
      steps_first ? x : w.transpose(x, {1, 0, 2}), weight, recurrence, bias, "", state("h0")};
  ExportAttributes attributes = {
      int_attribute("hidden_size", hidden),
      string_attribute("direction", w.attr("reverse").as_bool() ? "reverse" : "forward")};
  const bool is_lstm = cell == "lstm";
  if (is_lstm) inputs.push_back(state("c0"));
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

// --- gradients ---

/// Gates, states and gradients are [batch, steps, width]; in the body of a Scan, without the steps.
class ScanGradient {
 public:
  explicit ScanGradient(Writer& w)
      : w_(w),
        cell_(w.attr("cell").as_string()),
        reverse_(w.attr("reverse").as_bool()),
        dtype_(w.result_type().dtype),
        one_(w.scalar(1, dtype_)) {
    const Dim& width = w.type("h0").shape.back();
    if (!width.is_constant()) w.reject("its width is symbolic");
    hidden_ = width.value();
  }

  void write() {
    // The state before each step: the outputs, moved by one.
    const std::string axis = w_.ints({1}), first = w_.add("Unsqueeze", {w_.in("h0"), axis}),
                      out = w_.in("out");
    const auto part = [&](int64_t begin, int64_t end) {
      return w_.add("Slice", {out, w_.ints({begin}), w_.ints({end}), axis});
    };
    before_ = reverse_ ? joined({part(1, INT64_MAX), first}, 1) : joined({first, part(0, -1)}, 1);
    if (cell_ == "lstm")
      lstm();
    else if (cell_ == "gru")
      gru();
    else
      plain();
  }

 private:
  std::string mul(const std::string& a, const std::string& b) { return w_.add("Mul", {a, b}); }
  std::string add(const std::string& a, const std::string& b) { return w_.add("Add", {a, b}); }
  std::string less(const std::string& a, const std::string& b) { return w_.add("Sub", {a, b}); }
  std::string joined(const Names& parts, int64_t axis) {
    return w_.add("Concat", parts, {int_attribute("axis", axis)});
  }
  std::string gate(const std::string& gates, int64_t i) {
    return w_.add("Slice",
                  {gates, w_.ints({i * hidden_}), w_.ints({(i + 1) * hidden_}), w_.ints({-1})});
  }
  /// x (1 - x), the derivative of a sigmoid, and 1 - x², that of tanh, from its value.
  std::string of_sigmoid(const std::string& x) { return mul(x, less(one_, x)); }
  std::string of_tanh(const std::string& x) { return less(one_, mul(x, x)); }

  /// The hidden state's share of the gates, for all steps.
  std::string share() {
    const std::string product = w_.add("MatMul", {before_, w_.transpose(w_.in("weight"), {1, 0})});
    return w_.operand("bias") ? add(product, w_.in("bias")) : product;
  }

  /// A Scan over the steps, from the last one on if `backward`: `body` takes the states and what
  /// `inputs` have for a step, and gives the next states and `outputs` results of the step.
  Names scan(const Names& states, const Names& inputs, size_t outputs, bool backward,
             const std::function<Names(const Names& states, const Names& inputs)>& body) {
    Names state_names, input_names;
    std::vector<formats::onnx::ValueInfo> infos;
    const auto declare = [&](const char* name, Names& names) {
      formats::onnx::ValueInfo info;
      info.name = w_.fresh(name);
      info.type.kind = formats::onnx::ValueType::Kind::kTensor;
      info.type.dtype = dtype_;
      info.type.shape = Shape{Dim::unknown(), Dim::unknown()};  // [batch, width]
      names.push_back(info.name);
      infos.push_back(std::move(info));
    };
    for (size_t i = 0; i < states.size(); ++i) declare("scan_state", state_names);
    for (size_t i = 0; i < inputs.size(); ++i) declare("scan_step", input_names);
    formats::onnx::Attribute graph;
    graph.name = "body";
    graph.kind = formats::onnx::AttributeKind::kGraph;
    graph.graphs = {
        w_.subgraph("scan_body", infos, [&] { return body(state_names, input_names); })};
    for (auto& result : graph.graphs[0]->outputs) result.type = infos[0].type;
    const bool from_last = backward != reverse_;
    const auto all = [](size_t count, int64_t value) { return std::vector<int64_t>(count, value); };
    Names operands = states;
    operands.insert(operands.end(), inputs.begin(), inputs.end());
    return w_.add_several(
        "Scan", operands, states.size() + outputs,
        {graph, int_attribute("num_scan_inputs", static_cast<int64_t>(inputs.size())),
         ints_attribute("scan_input_axes", all(inputs.size(), 1)),
         ints_attribute("scan_input_directions", all(inputs.size(), from_last ? 1 : 0)),
         ints_attribute("scan_output_axes", all(outputs, 1)),
         ints_attribute("scan_output_directions", all(outputs, from_last ? 1 : 0))});
  }

  void results(const std::string& gates, const std::string& hidden, const std::string& h0,
               const std::string& c0) {
    w_.result(0, gates);
    w_.result(1, hidden);
    w_.result(2, h0);
    if (!w_.is_used(3)) return;
    w_.result(3, c0.empty() ? mul(w_.in("c0"), w_.scalar(0, dtype_)) : c0);
  }

  void lstm() {
    const std::string sums = add(w_.in("gates"), share());
    const std::string i = w_.add("Sigmoid", {gate(sums, 0)}),
                      f = w_.add("Sigmoid", {gate(sums, 1)}), g = w_.add("Tanh", {gate(sums, 2)}),
                      o = w_.add("Sigmoid", {gate(sums, 3)});
    const Names memory =
        scan({w_.in("c0")}, {f, mul(i, g)}, 2, false, [&](const Names& states, const Names& at) {
          const std::string c = add(mul(at[0], states[0]), at[1]);
          return Names{c, states[0], c};
        });
    const std::string t = w_.add("Tanh", {memory[2]});
    // Factors of the gradients of the memory and of the output.
    const Names factors = {w_.in("grad_out"),
                           mul(o, of_tanh(t)),
                           mul(g, of_sigmoid(i)),
                           mul(memory[1], of_sigmoid(f)),
                           mul(i, of_tanh(g)),
                           mul(t, of_sigmoid(o)),
                           f};
    const Names out =
        scan({w_.in("grad_h"), w_.in("grad_c")}, factors, 1, true,
             [&](const Names& states, const Names& at) {
               const std::string dh = add(states[0], at[0]);
               const std::string dc = add(states[1], mul(dh, at[1]));
               const std::string gates =
                   joined({mul(dc, at[2]), mul(dc, at[3]), mul(dc, at[4]), mul(dh, at[5])}, 1);
               return Names{w_.add("MatMul", {gates, w_.in("weight")}), mul(dc, at[6]), gates};
             });
    results(out[2], out[2], out[0], out[1]);
  }

  void gru() {
    const std::string x = w_.in("gates"), h = share(), new_share = gate(h, 2);
    const std::string r = w_.add("Sigmoid", {add(gate(x, 0), gate(h, 0))}),
                      z = w_.add("Sigmoid", {add(gate(x, 1), gate(h, 1))}),
                      n = w_.add("Tanh", {add(gate(x, 2), mul(r, new_share))});
    const Names factors = {w_.in("grad_out"),
                           mul(less(one_, z), of_tanh(n)),
                           mul(new_share, of_sigmoid(r)),
                           mul(less(before_, n), of_sigmoid(z)),
                           r,
                           z};
    const Names out =
        scan({w_.in("grad_h")}, factors, 2, true, [&](const Names& states, const Names& at) {
          const std::string dh = add(states[0], at[0]), dn = mul(dh, at[1]), dr = mul(dn, at[2]),
                            dz = mul(dh, at[3]);
          const std::string hidden = joined({dr, dz, mul(dn, at[4])}, 1);
          const std::string before =
              add(w_.add("MatMul", {hidden, w_.in("weight")}), mul(dh, at[5]));
          return Names{before, joined({dr, dz, dn}, 1), hidden};
        });
    results(out[1], out[2], out[0], "");
  }

  void plain() {
    const std::string out = w_.in("out");
    const std::string derivative =
        cell_ == "tanh"
            ? of_tanh(out)
            : w_.cast(w_.add("Greater", {out, w_.scalar(0, dtype_)}), DType::kBool, dtype_);
    const Names all = scan({w_.in("grad_h")}, {w_.in("grad_out"), derivative}, 1, true,
                           [&](const Names& states, const Names& at) {
                             const std::string gates = mul(add(states[0], at[0]), at[1]);
                             return Names{w_.add("MatMul", {gates, w_.in("weight")}), gates};
                           });
    results(all[1], all[1], all[0], "");
  }

  Writer& w_;
  std::string cell_;
  bool reverse_;
  DType dtype_;
  std::string one_;
  int64_t hidden_ = 0;
  std::string before_;
};

void recurrent_scan_grad(Writer& w) { ScanGradient(w).write(); }

}  // namespace

std::vector<ExportRuleEntry> recurrent_export_rules() {
  return {{"recurrent_scan", recurrent_scan}, {"recurrent_scan_grad", recurrent_scan_grad}};
}

}  // namespace paddle::onnx
