// RNN, GRU and LSTM. Standard cells use the recurrent kernels of ops/; peepholes, clipping and
// other activations are unrolled step by step.

#include <algorithm>
#include <map>
#include <optional>

#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/quantization.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

enum class Cell : uint8_t { kRnn, kGru, kLstm };

/// An activation with its parameters.
struct Activation {
  std::string name;
  double alpha = 0, beta = 0;

  Tensor operator()(const Tensor& x) const {
    if (name == "sigmoid") return ops::sigmoid(x);
    if (name == "tanh") return ops::tanh(x);
    if (name == "relu") return ops::relu(x);
    if (name == "affine") return x * alpha + beta;
    if (name == "leakyrelu") return ops::leaky_relu(x, alpha);
    if (name == "thresholdedrelu") return ops::thresholded_relu(x, alpha);
    if (name == "scaledtanh") return ops::tanh(x * beta) * alpha;
    if (name == "hardsigmoid") return ops::hardsigmoid(x, alpha, beta);
    if (name == "elu") return ops::elu(x, alpha);
    if (name == "softsign") return ops::softsign(x);
    if (name == "softplus") return ops::softplus(x, 1, 1e30);
    fail(ErrorCode::kModel, "unknown activation '", name, "'");
  }
};

Tensor row(const Tensor& t, int64_t i) {
  return ops::squeeze(slice_axis(t, 0, i, i + 1), std::vector<int64_t>{0});
}

/// Attention memory that each hidden state queries for the next step (additive attention, Bahdanau
/// et al., "Neural Machine Translation by Jointly Learning to Align and Translate", 2015).
struct Memory {
  Tensor values, keys;  ///< [batch, positions, depth], [batch, positions, size]
  Tensor valid;         ///< [batch, positions]: false for padding
  Tensor query, score;  ///< [hidden, size], [size]
  Tensor layer;         ///< [hidden + depth, attended], may be undefined

  Tensor operator()(const Tensor& h) const {
    const Tensor meeting = ops::tanh(keys + ops::unsqueeze(ops::matmul(h, query), {1}));
    const Tensor scores =
        ops::sum(meeting * score, std::vector<int64_t>{2}, std::optional<DType>(h.dtype()));
    const Tensor kept = ops::where(valid, scores, scalar(-1e30, h.dtype()));
    const Tensor shares = ops::unsqueeze(ops::softmax(kept, -1), {1});
    const Tensor context = ops::squeeze(ops::matmul(shares, values), std::vector<int64_t>{1});
    return layer ? ops::matmul(ops::concat({h, context}, 1), layer) : context;
  }

  /// For a direction, from inputs 8 to 13.
  static Memory of(const NodeCall& c, int64_t side) {
    Memory m;
    const Tensor& input = c.tensor(11);
    c.check(input.ndim() == 3, "the memory must be [batch, positions, depth], not ", input.type());
    const Dim positions = input.dim(1);
    const Tensor ends = c.has_input(12)
                            ? ops::cast(c.tensor(12), DType::kI64)
                            : ops::expand(dim_value(positions, DType::kI64), {input.dim(0)});
    m.valid = ops::less_than(ops::unsqueeze(iota(positions), {0}), ops::unsqueeze(ends, {1}));
    m.values = ops::where(ops::unsqueeze(m.valid, {2}), input, scalar(0, input.dtype()));
    m.keys = ops::matmul(m.values, row(c.tensor(9), side));
    m.query = row(c.tensor(8), side);
    m.score = row(c.tensor(10), side);
    if (c.has_input(13)) m.layer = row(c.tensor(13), side);
    return m;
  }
  Dim width() const { return layer ? layer.dim(1) : values.dim(2); }  ///< of the context
};

/// Dynamic quantization to 8 bits and back: what a dynamically quantized matmul reads.
Tensor fake_quantize_8bit(const Tensor& x) {
  const Tensors made = ops::quantize_dynamic(x);
  return (ops::cast(made[0], x.dtype()) - ops::cast(made[2], x.dtype())) * made[1];
}

enum class Form : uint8_t {
  kPlain,
  kAttention,        ///< each step also reads the context of the previous one (AttnLSTM)
  kDynamicQuantized  ///< weights multiply dynamically quantized inputs and states
};

/// Attributes and weights of one direction.
struct Direction {
  Cell cell;
  Form form = Form::kPlain;
  bool reverse = false, linear_before_reset = false, coupled = false;
  double clip = 0;
  std::vector<Activation> activations;
  Tensor w, r, wb, rb, peephole;  ///< [gates * hidden, ...]
  Tensor h, c;                    ///< [batch, hidden]
  Tensor lengths;                 ///< [batch], may be undefined
  std::optional<Memory> memory;   ///< its context is appended to each input
};

int64_t gates_of(Cell cell) { return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1; }

std::vector<Activation> activations_of(const NodeCall& c, Cell cell, int64_t directions,
                                       int64_t direction, bool& default_activations) {
  struct Parameters {
    double alpha;
    std::optional<double> beta;  ///< for activations with two parameters
  };
  static const std::map<std::string, Parameters> kDefaults = {
      {"leakyrelu", {0.01, {}}}, {"thresholdedrelu", {1, {}}},
      {"scaledtanh", {1, 1}},    {"hardsigmoid", {0.2, 0.5}},
      {"elu", {1, {}}},          {"affine", {1, 0}}};
  std::vector<std::string> usual = {"sigmoid", "tanh", "tanh"};
  if (cell == Cell::kGru) usual = {"sigmoid", "tanh"};
  if (cell == Cell::kRnn) usual = {"tanh"};
  std::vector<std::string> names = c.strings_attr("activations");
  const auto alphas = c.floats_attr("activation_alpha"), betas = c.floats_attr("activation_beta");
  default_activations = names.empty();
  if (names.empty())
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), usual.begin(), usual.end());
  c.check(names.size() == usual.size() * static_cast<size_t>(directions), "there are ",
          names.size(), " activations");
  // Activations with parameters consume the lists in order.
  auto alpha = alphas.begin(), beta = betas.begin();
  std::vector<Activation> all;
  for (const std::string& name : names) {
    Activation a;
    for (const char ch : name) a.name += static_cast<char>(std::tolower(ch));
    if (const auto it = kDefaults.find(a.name); it != kDefaults.end()) {
      a.alpha = alpha != alphas.end() ? *alpha++ : it->second.alpha;
      if (it->second.beta) a.beta = beta != betas.end() ? *beta++ : *it->second.beta;
    }
    all.push_back(a);
  }
  const auto first = all.begin() + direction * static_cast<int64_t>(usual.size());
  return {first, first + static_cast<int64_t>(usual.size())};
}

/// Permutes gates.
Tensor permute_gates(const Tensor& t, const Dim& hidden, const std::vector<int64_t>& order) {
  Tensors parts;
  for (const int64_t g : order) parts.push_back(slice_axis(t, 0, hidden * g, hidden * (g + 1)));
  return parts.size() == 1 ? parts[0] : ops::concat(parts, 0);
}

struct Steps {
  Tensor all, h, c;  ///< [steps, batch, hidden], [batch, hidden]
};

/// Runs the recurrent kernel, whose gates are in PyTorch's order. Sequences with lengths run
/// forward, and results after their ends are ignored.
Steps run_kernel(const Direction& d, const Tensor& input, const Dim& hidden) {
  const Dim steps = input.dim(0), batch = input.dim(1);
  Tensor x = input, lengths, valid;
  if (d.lengths) {
    const DType i64 = DType::kI64;
    lengths = ops::minimum(ops::cast(d.lengths, i64), dim_value(steps, i64));
    const Tensor at = iota(steps);
    valid = ops::less_than(ops::unsqueeze(at, {1, 2}), ops::unsqueeze(lengths, {0, 2}));
    if (d.reverse) x = reverse_sequences(x, lengths);
  }
  std::vector<int64_t> order = {0};
  if (d.cell == Cell::kLstm) order = {0, 2, 3, 1};
  if (d.cell == Cell::kGru) order = {1, 0, 2};
  Tensor gates = ops::matmul(x, permute_gates(d.w, hidden, order), false, true) +
                 permute_gates(d.wb, hidden, order);
  Tensor hidden_bias;
  if (d.cell == Cell::kGru)
    hidden_bias = permute_gates(d.rb, hidden, order);
  else
    gates = gates + permute_gates(d.rb, hidden, order);
  if (lengths && d.cell == Cell::kLstm) {
    // Padding keeps the cell state: input gate closed, forget gate open.
    const auto all = [&](double value) { return ops::full({hidden}, value, x.dtype()); };
    gates = ops::where(valid, gates, ops::concat({all(-1e30), all(1e30), all(0), all(0)}, 0));
  }
  const std::string cell = d.cell == Cell::kLstm  ? "lstm"
                           : d.cell == Cell::kGru ? "gru"
                                                  : d.activations[0].name;
  const Tensors out =
      ops::recurrent_scan(ops::transpose(gates, {1, 0, 2}), permute_gates(d.r, hidden, order),
                          hidden_bias, d.h, d.c ? d.c : d.h, cell, d.reverse && !lengths);
  Steps result{ops::transpose(out[0], {1, 0, 2}), out[1], out[2]};
  if (!lengths) return result;
  const Tensor zero = int_scalar(0), first = ops::maximum(lengths - int_scalar(1), zero);
  const Tensor row = first + iota(batch) * dim_value(steps, DType::kI64);
  const Tensor last = ops::index_select(ops::reshape(out[0], {batch * steps, hidden}), row, 0);
  result.h = ops::where(ops::unsqueeze(ops::greater_than(lengths, zero), {1}), last, d.h);
  result.all = ops::where(valid, result.all, scalar(0, x.dtype()));
  if (d.reverse) result.all = reverse_sequences(result.all, lengths);
  return result;
}

Tensor clipped(const Direction& d, const Tensor& x) {
  return d.clip > 0 ? ops::clip(x, -d.clip, d.clip) : x;
}

/// One step; returns the next h and c.
std::pair<Tensor, Tensor> step(const Direction& d, const Tensor& input, const Tensor& h,
                               const Tensor& c, const Dim& hidden) {
  const auto gate = [&](const Tensor& t, int64_t g) {
    return slice_axis(t, -1, hidden * g, hidden * (g + 1));
  };
  const auto peep = [&](int64_t g) {
    return slice_axis(d.peephole, 0, hidden * g, hidden * (g + 1));
  };
  const Activation& f = d.activations[0];
  if (d.cell == Cell::kRnn)
    return {f(clipped(d, input + ops::matmul(h, d.r, false, true) + d.rb)), c};
  const Activation& g = d.activations[1];
  if (d.cell == Cell::kGru) {
    const Tensor share = ops::matmul(h, slice_axis(d.r, 0, 0, hidden * 2), false, true) +
                         slice_axis(d.rb, 0, 0, hidden * 2);
    const Tensor z = f(clipped(d, gate(input, 0) + gate(share, 0)));
    const Tensor r = f(clipped(d, gate(input, 1) + gate(share, 1)));
    const Tensor weight = slice_axis(d.r, 0, hidden * 2, hidden * 3), bias = gate(d.rb, 2);
    const Tensor moved = d.linear_before_reset ? r * (ops::matmul(h, weight, false, true) + bias)
                                               : ops::matmul(r * h, weight, false, true) + bias;
    const Tensor n = g(clipped(d, gate(input, 2) + moved));
    return {(1.0 - z) * n + z * h, c};
  }
  const Activation& last = d.activations[2];
  const Tensor all = input + ops::matmul(h, d.r, false, true) + d.rb;
  Tensor in = gate(all, 0), out = gate(all, 1), forget = gate(all, 2);
  if (d.peephole) {
    in = in + peep(0) * c;
    forget = forget + peep(2) * c;
  }
  const Tensor i = f(clipped(d, in));
  const Tensor keep = d.coupled ? 1.0 - i : f(clipped(d, forget));
  const Tensor next = keep * c + i * g(clipped(d, gate(all, 3)));
  if (d.peephole) out = out + peep(1) * next;
  return {f(clipped(d, out)) * last(next), next};
}

Steps unrolled(const Direction& d, const Tensor& x, const Dim& hidden) {
  const int64_t steps = constant_dim(x, 0);
  if (steps > 4096) fail(ErrorCode::kModel, "there are too many steps to unroll: ", steps);
  const Dim own = x.dim(2);
  const auto met = [&](const Tensor& t) {
    return d.form == Form::kDynamicQuantized ? fake_quantize_8bit(t) : t;
  };
  const Tensor inputs = ops::matmul(met(x), slice_axis(d.w, 1, 0, own), false, true) + d.wb;
  const Tensor weight = d.memory ? slice_axis(d.w, 1, own, d.w.dim(1)) : Tensor();
  Tensors out(static_cast<size_t>(steps));
  Tensor h = d.h, c = d.c, attended;
  for (int64_t k = 0; k < steps; ++k) {
    const int64_t t = d.reverse ? steps - 1 - k : k;
    Tensor input = row(inputs, t);
    if (attended) input = input + ops::matmul(attended, weight, false, true);
    auto [new_h, new_c] = step(d, input, met(h), c, hidden);
    Tensor new_attended = d.memory ? (*d.memory)(new_h) : Tensor();
    Tensor shown = new_h;
    if (d.lengths) {  // finished sequences keep their state and output zeros
      const Tensor valid =
          ops::unsqueeze(ops::greater_than(d.lengths, int_scalar(t, d.lengths.dtype())), {1});
      shown = ops::where(valid, new_h, scalar(0, new_h.dtype()));
      new_h = ops::where(valid, new_h, h);
      if (c) new_c = ops::where(valid, new_c, c);
      if (d.memory)
        new_attended =
            ops::where(valid, new_attended, attended ? attended : scalar(0, new_attended.dtype()));
    }
    h = new_h;
    c = new_c;
    attended = new_attended;
    out[static_cast<size_t>(t)] = shown;
  }
  return {ops::stack(out, 0), h, c};
}

/// The initial state of a direction, from [directions, batch, hidden]; absent in files: zeros.
Tensor initial_state(const NodeCall& call, const Tensor& all, int64_t side, const Dim& batch,
                     const Dim& hidden) {
  call.check(all.ndim() == 3 && all.dim(1).equals(batch).value_or(true) &&
                 all.dim(2).equals(hidden).value_or(true),
             "the shape of an initial state is ", all.type(), ", the batch ", batch,
             ", the hidden size ", hidden);
  return ops::reshape(slice_axis(all, 0, side, side + 1), {batch, hidden});
}

template <Cell kCell, Form form = Form::kPlain>
Values recurrent(NodeCall& call) {
  const bool batch_first = call.int_attr("layout", 0) == 1;
  Tensor x = call.tensor(0);
  const DType dtype = x.dtype();
  const bool narrow = dtype == DType::kF16 || dtype == DType::kBF16;
  const auto wide = [&](const Tensor& t) { return narrow && t ? ops::cast(t, DType::kF32) : t; };
  x = wide(x);
  if (batch_first) x = ops::transpose(x, {1, 0, 2});
  const Dim batch = x.dim(1);
  const std::string word = call.string_attr("direction", "forward");
  const int64_t directions = word == "bidirectional" ? 2 : 1;
  const Tensor w = wide(call.tensor(1)), r = wide(call.tensor(2));
  const Dim hidden = r.dim(2);
  const int64_t gates = gates_of(kCell);
  call.check(w.dim(0).equals(directions).value_or(true), "the weights are not for the direction '",
             word, "'");
  Tensors alls, hs, cs;
  for (int64_t side = 0; side < directions; ++side) {
    Direction d;
    d.cell = kCell;
    d.form = form;
    d.reverse = side == 1 || word == "reverse";
    d.linear_before_reset = call.bool_attr("linear_before_reset", false);
    d.coupled = call.bool_attr("input_forget", false);
    d.clip = call.float_attr("clip", 0);
    bool usual = true;
    d.activations = activations_of(call, kCell, directions, side, usual);
    d.w = row(w, side);
    d.r = row(r, side);
    const Tensor bias = call.has_input(3) ? row(wide(call.tensor(3)), side)
                                          : ops::full({hidden * (2 * gates)}, 0.0, x.dtype());
    d.wb = slice_axis(bias, 0, 0, hidden * gates);
    d.rb = slice_axis(bias, 0, hidden * gates, hidden * (2 * gates));
    const auto state = [&](size_t i) {
      if (!call.has_input(i)) return ops::full({batch, hidden}, 0.0, x.dtype());
      const Tensor all = wide(call.tensor(i));
      return initial_state(call, batch_first ? ops::transpose(all, {1, 0, 2}) : all, side, batch,
                           hidden);
    };
    d.h = state(5);
    if (kCell == Cell::kLstm) {
      d.c = state(6);
      if (call.has_input(7)) d.peephole = row(wide(call.tensor(7)), side);
    }
    d.lengths = call.optional_tensor(4);
    if (form == Form::kAttention) d.memory = Memory::of(call, side);
    call.check(d.w.dim(1).equals(x.dim(2) + (d.memory ? d.memory->width() : 0)).value_or(true),
               "a weight ", w.type(), " does not fit inputs ", x.type());
    const bool scans = form == Form::kPlain && usual && d.clip == 0 && !d.peephole && !d.coupled &&
                       (kCell != Cell::kGru || d.linear_before_reset);
    Steps out = scans ? run_kernel(d, x, hidden) : unrolled(d, x, hidden);
    alls.push_back(out.all);
    hs.push_back(out.h);
    cs.push_back(out.c);
  }
  // [steps, directions, batch, hidden], or with the batch in front
  Tensor all = ops::stack(alls, 1), h = ops::stack(hs, 0);
  if (batch_first) {
    all = ops::transpose(all, {2, 0, 1, 3});
    h = ops::transpose(h, {1, 0, 2});
  }
  const auto back = [&](const Tensor& t) { return narrow ? ops::cast(t, dtype) : t; };
  if (kCell != Cell::kLstm) return {back(all), back(h)};
  Tensor c = ops::stack(cs, 0);
  if (batch_first) c = ops::transpose(c, {1, 0, 2});
  return {back(all), back(h), back(c)};
}

}  // namespace

Values dynamic_quantize_lstm_rule(NodeCall& c) {
  return recurrent<Cell::kLstm, Form::kDynamicQuantized>(c);
}
Values attn_lstm_rule(NodeCall& c) { return recurrent<Cell::kLstm, Form::kAttention>(c); }

OperatorTable recurrent_operators() {
  static constexpr Operator operators[] = {
      {"RNN", 1, recurrent<Cell::kRnn>},
      {"GRU", 1, recurrent<Cell::kGru>},
      {"LSTM", 1, recurrent<Cell::kLstm>},
  };
  return operators;
}

}  // namespace paddle::onnx
