// Rules of recurrent.yaml.

#include <optional>

#include "ops/core/compose.h"
#include "ops/core/cost.h"
#include "ops/core/operators.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "ops/generated/sequence_rules.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

int64_t gates_of(const std::string& cell) { return cell == "lstm" ? 4 : cell == "gru" ? 3 : 1; }

/// Values that the gradient needs: [i, f, g, o, c], [r, z, n, hidden share of n], or none.
int64_t saved_of(const std::string& cell) { return cell == "lstm" ? 5 : cell == "gru" ? 4 : 0; }

/// Shared by lstm, gru and simple_rnn; attributes are read by name.
struct Recurrent {
  std::string cell;
  int64_t layers;
  bool both, backward_only, time_major, training;
  double dropout;
  size_t weights, h0, c0, lengths;  ///< declared positions

  Recurrent(const Op& op, const Attrs& attrs) {
    const auto attr = [&](const char* name) -> const AttrValue& {
      return attrs[static_cast<size_t>(op.attr_index(name))];
    };
    cell = op.name() == "simple_rnn" ? attr("activation").as_string() : std::string(op.name());
    layers = attr("num_layers").as_int();
    const std::string& word = attr("direction").as_string();
    both = word == "bidirect" || word == "bidirectional";
    backward_only = word == "backward";
    time_major = attr("time_major").as_bool();
    training = attr("training").as_bool();
    dropout = attr("dropout").as_double();
    weights = static_cast<size_t>(op.operand_index("weights"));
    h0 = static_cast<size_t>(op.operand_index("initial_h"));
    c0 = cell == "lstm" ? static_cast<size_t>(op.operand_index("initial_c")) : h0;
    lengths = static_cast<size_t>(op.operand_index("sequence_length"));
  }
  int64_t directions() const { return both ? 2 : 1; }
  /// Weights per layer and direction: 2, or 4 with biases.
  size_t per_layer(const char* op, size_t count) const {
    const auto most = static_cast<int64_t>(count);
    const auto cells = static_cast<size_t>(layers > most ? 0 : layers * directions());
    if (layers < 1 || layers > most || (count != 2 * cells && count != 4 * cells))
      fail(ErrorCode::kUsage, op, ": ", count, " weights for ", layers, " layers of ", directions(),
           " directions");
    return count / cells;
  }
};

}  // namespace

void infer_recurrent(InferContext& c) {
  const Recurrent r(c.op(), c.attrs());
  c.check(c.rank(0) == 3, "x must have 3 dimensions, not ", c.type(0));
  const size_t each = r.per_layer(c.op().def->name, c.list_size(r.weights));
  const Shape& hidden_weight = c.list_type(r.weights, 1).shape;
  c.check(hidden_weight.size() == 2, "weight_hh must be [gates * hidden, hidden]");
  const Dim hidden = hidden_weight[1];
  Dim features = c.shape(0)[2];
  for (size_t i = 0; i < c.list_size(r.weights); i += each) {
    if (i > 0 && i % (each * static_cast<size_t>(r.directions())) == 0)
      features = hidden * r.directions();
    const Shape &w_ih = c.list_type(r.weights, i).shape,
                &w_hh = c.list_type(r.weights, i + 1).shape;
    c.check(w_ih.size() == 2 && w_hh.size() == 2, "weights must be matrices");
    c.require_equal(w_ih[1], features,
                    str("weight_ih is ", text(w_ih), ", its input has ", features, " features"));
    c.require_equal(w_ih[0], hidden * gates_of(r.cell), "weight_ih does not have its gates' rows");
    c.require_equal(w_hh[0], hidden * gates_of(r.cell), "weight_hh does not have its gates' rows");
    c.require_equal(w_hh[1], hidden, "weight_hh does not take the hidden state");
  }
  const Dim batch = c.shape(0)[r.time_major ? 1 : 0];
  Shape out = c.shape(0);
  out[2] = hidden * r.directions();
  const Shape state = {Dim(r.layers * r.directions()), batch, hidden};
  for (const size_t operand : {r.h0, r.c0})
    if (c.has(operand)) {
      c.check(c.rank(operand) == 3,
              "initial states must be [layers * directions, batch, hidden], not ", c.type(operand));
      for (size_t i = 0; i < 3; ++i)
        c.require_equal(c.shape(operand)[i], state[i], "an initial state does not fit");
    }
  if (c.has(r.lengths)) {
    const int64_t rank = is_bool(c.dtype(r.lengths)) ? 2 : 1;
    c.check(c.rank(r.lengths) == rank,
            "sequence_length must be integers [batch] or bool [batch, steps], not ",
            c.type(r.lengths));
    c.require_equal(c.shape(r.lengths)[0], batch, "sequence_length is not of the batch");
    if (rank == 2)
      c.require_equal(c.shape(r.lengths)[1], c.shape(0)[r.time_major ? 0 : 1],
                      "sequence_length is not of the steps");
  }
  c.result(c.dtype(0), out);
  c.result(c.dtype(0), state);
  if (r.cell == "lstm") c.result(c.dtype(0), state);
}

namespace {

/// Sequences that end before their padding, for scans from the first step on. `steps` must be the
/// same for all calls.
class Lengths {
 public:
  Lengths(const Tensor& given, const Dim& steps) {
    const Tensor count = is_bool(given.dtype())
                             ? ops::sum(ops::cast(given, DType::kI64), std::vector<int64_t>{1})
                             : ops::cast(given, DType::kI64);
    lengths_ = ops::minimum(ops::maximum(count, integer(0)), dim_value(steps, DType::kI64));
    const Tensor at =
        ops::unsqueeze(ops::arange(AttrValue(0), AttrValue(steps), AttrValue(1), DType::kI64), {0});
    const Tensor end = ops::unsqueeze(lengths_, {1});
    const Tensor inside = ops::less_than(at, end);
    valid_ = ops::unsqueeze(inside, {2});
    mirrored_ = ops::unsqueeze(ops::where(inside, end - at - integer(1), at), {2});
    last_ = ops::unsqueeze(ops::maximum(end - integer(1), integer(0)), {2});
    is_empty_ = ops::equal(end, integer(0));
  }
  /// Each sequence [batch, steps, n] backwards, its padding in place.
  Tensor reversed(const Tensor& x) const { return ops::take_along_axis(x, mirrored_, 1); }
  Tensor without_padding(const Tensor& x) const {
    return ops::where(valid_, x, full_of({}, 0, x.dtype()));
  }
  /// The gates of an LSTM with which the padding keeps the cell: input closed, forget gate open.
  Tensor kept_cell(const Tensor& gates, const Dim& hidden) const {
    const auto all = [&](double value) { return full_of({hidden}, value, gates.dtype()); };
    return ops::where(valid_, gates, ops::concat({all(-1e30), all(1e30), all(0), all(0)}, 0));
  }
  /// The outputs of the last steps, [batch, n], or `first` of empty sequences.
  Tensor last_of(const Tensor& out, const Tensor& first) const {
    return ops::where(is_empty_, first,
                      ops::squeeze(ops::take_along_axis(out, last_, 1), std::vector<int64_t>{1}));
  }

 private:
  static Tensor integer(int64_t value) {
    return full_of({}, static_cast<double>(value), DType::kI64);
  }
  Tensor lengths_, valid_, mirrored_, last_, is_empty_;
};

}  // namespace

Tensors decompose_recurrent(CallContext& c) {
  const Recurrent r(c.op(), c.attrs());
  const Tensors weights = c.list(r.weights);
  const size_t each = r.per_layer(c.op().def->name, weights.size());
  Tensor x = c.operand(0);
  const DType dtype = x.dtype();
  const bool narrow = dtype == DType::kF16 || dtype == DType::kBF16;
  const auto wide = [&](const Tensor& t) { return narrow ? ops::cast(t, DType::kF32) : t; };
  x = wide(x);
  if (r.time_major) x = ops::transpose(x, {1, 0, 2});
  const Dim batch = x.dim(0), hidden = weights[1].dim(1);
  const auto first_state = [&](size_t operand, int64_t i) {
    if (!c.has(operand)) return full_of({batch, hidden}, 0, x.dtype());
    const Tensor one =
        ops::strided_slice(wide(c.operand(operand)), {0}, {Dim(i)}, {Dim(i + 1)}, {1});
    return ops::squeeze(one, std::vector<int64_t>{0});
  };
  std::optional<Lengths> lengths;
  if (c.has(r.lengths)) lengths.emplace(c.operand(r.lengths), x.dim(1));
  Tensors last_h, last_c;
  for (int64_t layer = 0; layer < r.layers; ++layer) {
    if (layer > 0 && r.dropout > 0 && r.training) x = ops::dropout(x, r.dropout);
    Tensors outs;
    for (int64_t side = 0; side < r.directions(); ++side) {
      const int64_t at = layer * r.directions() + side;
      const size_t w = static_cast<size_t>(at) * each;
      const bool backward = side == 1 || r.backward_only;
      const Tensor input = lengths && backward ? lengths->reversed(x) : x;
      Tensor gates = ops::matmul(input, wide(weights[w]), false, true), hidden_bias;
      if (each == 4) {
        gates = gates + wide(weights[w + 2]);
        // Only gru multiplies the hidden share by a gate after its bias.
        if (r.cell == "gru")
          hidden_bias = wide(weights[w + 3]);
        else
          gates = gates + wide(weights[w + 3]);
      }
      if (lengths && r.cell == "lstm") gates = lengths->kept_cell(gates, hidden);
      const Tensor h0 = first_state(r.h0, at);
      Tensors scanned = ops::recurrent_scan(gates, wide(weights[w + 1]), hidden_bias, h0,
                                            first_state(r.c0, at), r.cell, backward && !lengths);
      if (lengths) {
        scanned[1] = lengths->last_of(scanned[0], h0);
        if (backward) scanned[0] = lengths->reversed(scanned[0]);
        scanned[0] = lengths->without_padding(scanned[0]);
      }
      outs.push_back(scanned[0]);
      last_h.push_back(scanned[1]);
      last_c.push_back(scanned[2]);
    }
    x = outs.size() == 1 ? outs[0] : ops::concat(outs, 2);
  }
  if (r.time_major) x = ops::transpose(x, {1, 0, 2});
  const auto back = [&](const Tensor& t) { return narrow ? ops::cast(t, dtype) : t; };
  Tensors out = {back(x), back(ops::stack(last_h, 0))};
  if (r.cell == "lstm") out.push_back(back(ops::stack(last_c, 0)));
  return out;
}

void infer_recurrent_scan(InferContext& c) {
  const auto a = c.attrs_as<RecurrentScanAttrs>();
  const Shape& gates = c.shape(0);
  c.check(gates.size() == 3, "gates must be [batch, steps, gates * hidden], not ", c.type(0));
  c.check(c.rank(1) == 2, "weight must be [gates * hidden, hidden], not ", c.type(1));
  const Dim hidden = c.shape(1)[1], width = hidden * gates_of(a.cell);
  c.require_equal(gates[2], width, "gates and weight differ");
  c.require_equal(c.shape(1)[0], width, "rows of the weight");
  if (c.has(2)) {
    c.check(c.rank(2) == 1, "bias must be [gates * hidden], not ", c.type(2));
    c.require_equal(c.shape(2)[0], width, "bias and weight differ");
  }
  for (const size_t state : {3, 4}) {
    c.check(c.rank(state) == 2, "a first state must be [batch, hidden], not ", c.type(state));
    c.require_equal(c.shape(state)[0], gates[0], "batch of a first state");
    c.require_equal(c.shape(state)[1], hidden, "size of a first state");
  }
  c.result(c.dtype(0), {gates[0], gates[1], hidden});
  c.result(c.dtype(0), {gates[0], hidden});
  c.result(c.dtype(0), {gates[0], hidden});
  c.result(c.dtype(0), {gates[0], gates[1], hidden * saved_of(a.cell)});
}

Tensors vjp_recurrent_scan(VjpContext& c) {
  const auto a = c.attrs_as<RecurrentScanAttrs>();
  const Tensor &gates = c.operand(0), &weight = c.operand(1), &h0 = c.operand(3),
               &out = c.result(0);
  const Tensors grads = ops::recurrent_scan_grad(
      c.cotangent_or_zeros(0), c.cotangent_or_zeros(1), c.cotangent_or_zeros(2), gates, weight,
      c.operand(2), h0, c.operand(4), out, c.result(3), a.cell, a.reverse);
  Tensors result = c.gradients();
  result[0] = grads[0];
  if (c.needs(1)) {
    // The state before each step: the outputs, moved by one.
    const Dim steps = gates.dim(1), hidden = weight.dim(1);
    const Tensor first = ops::unsqueeze(h0, {1});
    const auto part = [&](const Dim& start, const Dim& end) {
      return ops::strided_slice(out, {1}, {start}, {end}, {1});
    };
    const Tensor before = a.reverse ? ops::concat({part(1, steps), first}, 1)
                                    : ops::concat({first, part(0, steps - 1)}, 1);
    const Dim rows = gates.dim(0) * steps;
    result[1] = ops::matmul(ops::reshape(grads[1], {rows, gates.dim(2)}),
                            ops::reshape(before, {rows, hidden}), true);
  }
  if (c.needs(2)) result[2] = ops::sum(grads[1], std::vector<int64_t>{0, 1});
  result[3] = grads[2];
  if (a.cell == "lstm") result[4] = grads[3];
  return result;
}

void infer_recurrent_scan_grad(InferContext& c) {
  const auto a = c.attrs_as<RecurrentScanGradAttrs>();
  const Shape& out = c.shape(8);
  c.check(out.size() == 3, "out must be [batch, steps, hidden], not ", c.type(8));
  const Shape gates = {out[0], out[1], out[2] * gates_of(a.cell)};
  const auto same = [&](size_t i, const Shape& wanted) {
    const char* const name = c.op().operands()[i].name;
    c.check(c.rank(i) == static_cast<int64_t>(wanted.size()), name, " must have ", wanted.size(),
            " dimensions, not ", c.type(i));
    for (size_t k = 0; k < wanted.size(); ++k)
      c.require_equal(c.shape(i)[k], wanted[k], str(name, " does not match out"));
  };
  same(0, out);
  for (const size_t i : {size_t{1}, size_t{2}, size_t{6}, size_t{7}}) same(i, {out[0], out[2]});
  same(3, gates);
  same(4, {gates[2], out[2]});
  if (c.has(5)) same(5, {gates[2]});
  same(9, {out[0], out[1], out[2] * saved_of(a.cell)});
  c.result(c.dtype(0), gates);
  c.result(c.dtype(0), gates);
  c.result(c.dtype(0), {out[0], out[2]});
  c.result(c.dtype(0), {out[0], out[2]});
}

namespace {

/// One step of a cell in primitive operations, from the gates' share of the inputs and W h + b.
struct Step {
  Tensor h, c, r, z, n, share, i, f, g, o, t;
};

Step run_step(const std::string& cell, const Tensor& gates, const Tensor& share, const Tensor& h,
              const Tensor& c) {
  Step s;
  if (cell == "lstm") {
    const Tensors parts = ops::split(gates + share, AttrValue(4), -1);
    s.i = ops::sigmoid(parts[0]);
    s.f = ops::sigmoid(parts[1]);
    s.g = ops::tanh(parts[2]);
    s.o = ops::sigmoid(parts[3]);
    s.c = s.f * c + s.i * s.g;
    s.t = ops::tanh(s.c);
    s.h = s.o * s.t;
  } else if (cell == "gru") {
    const Tensors x = ops::split(gates, AttrValue(3), -1), w = ops::split(share, AttrValue(3), -1);
    s.r = ops::sigmoid(x[0] + w[0]);
    s.z = ops::sigmoid(x[1] + w[1]);
    s.share = w[2];
    s.n = ops::tanh(x[2] + s.r * w[2]);
    s.h = s.z * (h - s.n) + s.n;
  } else {
    s.h = cell == "tanh" ? ops::tanh(gates + share) : ops::relu(gates + share);
  }
  return s;
}

}  // namespace

// For gradients of higher order: the steps are run again, one by one, and then backwards.
Tensors decompose_recurrent_scan_grad(CallContext& c) {
  const auto a = c.attrs_as<RecurrentScanGradAttrs>();
  const Tensor &grad_out = c.operand(0), &gates = c.operand(3), &weight = c.operand(4),
               &h0 = c.operand(6), &c0 = c.operand(7);
  const int64_t steps = gates.dim(1).value();
  const auto at = [](const Tensor& x, int64_t t) {
    return ops::squeeze(ops::strided_slice(x, {1}, {Dim(t)}, {Dim(t + 1)}, {1}),
                        std::vector<int64_t>{1});
  };
  std::vector<Step> run;
  std::vector<int64_t> order;
  Tensor h = h0, memory = c0;
  for (int64_t k = 0; k < steps; ++k) {
    order.push_back(a.reverse ? steps - 1 - k : k);
    Tensor share = ops::matmul(h, weight, false, true);
    if (c.has(5)) share = share + c.operand(5);
    run.push_back(run_step(a.cell, at(gates, order.back()), share, h, memory));
    h = run.back().h;
    if (a.cell == "lstm") memory = run.back().c;
  }
  Tensor dh = c.operand(1), dc = a.cell == "lstm" ? c.operand(2) : zeros_like(c0);
  Tensors dgates(static_cast<size_t>(steps)), dhidden(static_cast<size_t>(steps));
  for (int64_t k = steps - 1; k >= 0; --k) {
    const Step& s = run[static_cast<size_t>(k)];
    const Tensor& before = k > 0 ? run[static_cast<size_t>(k - 1)].h : h0;
    const auto place = static_cast<size_t>(order[static_cast<size_t>(k)]);
    dh = dh + at(grad_out, order[static_cast<size_t>(k)]);
    Tensor passed;  // gradient of the previous state that does not pass through the weight
    if (a.cell == "lstm") {
      const Tensor& old = k > 0 ? run[static_cast<size_t>(k - 1)].c : c0;
      const Tensor d = dc + dh * s.o * (1.0 - s.t * s.t);
      dgates[place] = ops::concat({d * s.g * s.i * (1.0 - s.i), d * old * s.f * (1.0 - s.f),
                                   d * s.i * (1.0 - s.g * s.g), dh * s.t * s.o * (1.0 - s.o)},
                                  -1);
      dhidden[place] = dgates[place];
      dc = d * s.f;
    } else if (a.cell == "gru") {
      const Tensor dn = dh * (1.0 - s.z) * (1.0 - s.n * s.n);
      const Tensor dr = dn * s.share * s.r * (1.0 - s.r),
                   dz = dh * (before - s.n) * s.z * (1.0 - s.z);
      dgates[place] = ops::concat({dr, dz, dn}, -1);
      dhidden[place] = ops::concat({dr, dz, dn * s.r}, -1);
      passed = dh * s.z;
    } else {
      dgates[place] = a.cell == "tanh"
                          ? dh * (1.0 - s.h * s.h)
                          : dh * mask_of(ops::greater_than(s.h, Tensor::number(0.0)), dh);
      dhidden[place] = dgates[place];
    }
    dh = ops::matmul(dhidden[place], weight);
    if (passed.defined()) dh = dh + passed;
  }
  return {ops::stack(dgates, 1), ops::stack(dhidden, 1), dh, dc};
}

// --- cost ---

/// The hidden states' products with the weight; the inputs' share comes in as gates.
double cost_recurrent_scan(const Attrs&, const std::vector<Dims>& operands,
                           const std::vector<Dims>&) {
  return 2 * element_product(operands[0]) * static_cast<double>(operands[1].back());
}

double cost_recurrent_scan_grad(const Attrs&, const std::vector<Dims>& operands,
                                const std::vector<Dims>&) {
  return 2 * element_product(operands[3]) * static_cast<double>(operands[4].back());
}

}  // namespace paddle::rules
