// Rules of alignment.yaml. Kernels compute losses and occupancies; the decompositions state the
// same recursions step by step, for gradients of gradients.

#include <cmath>

#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/loss.h"
#include "ops/generated/loss_rules.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

constexpr double kImpossible = -1e30;   // log-probability
constexpr int64_t kMaxSteps = 1 << 14;  // of a decomposition

Tensor in_compute_type(const Tensor& x) {
  return x.dtype() == DType::kF64 ? x : ops::cast(x, DType::kF32);
}

Tensor int64_of(std::string_view op, const char* name, const Tensor& x, int64_t rank) {
  if (x.ndim() != rank) reject(op, name, " must have ", rank, " dimensions, not ", x.type());
  return ops::cast(x, DType::kI64);
}

int64_t constant_size(std::string_view op, const Tensor& x, int64_t axis) {
  if (!x.dim(axis).is_constant() || x.dim(axis).value() > kMaxSteps)
    reject(op, "the gradient of the gradient needs a constant number of steps up to ", kMaxSteps,
           ", not ", x.dim(axis));
  return x.dim(axis).value();
}

/// x[:, ..., i, ..., :] along an axis.
Tensor at(const Tensor& x, int64_t axis, int64_t i) {
  return ops::squeeze(slice_axis(x, axis, i, i + 1), Axes{axis});
}

Tensor column(const Tensor& x) { return ops::unsqueeze(x, {1}); }

Tensor log_sum(const Tensors& parts) { return ops::logsumexp(ops::stack(parts, 0), Axes{0}); }

/// x moved by `by` places along axis 1, impossible where nothing comes in.
Tensor shifted(const Tensor& x, int64_t by) {
  const int64_t size = x.dim(1).value(), n = std::min(std::abs(by), size);
  const Tensor moved = ops::pad(x, {0, 0, by > 0 ? n : 0, by > 0 ? 0 : n}, "constant", kImpossible);
  return slice_axis(moved, 1, by > 0 ? 0 : n, by > 0 ? size : size + n);
}

/// The states of CTC: labels between blanks, [n, 2 l + 1].
struct CtcStates {
  Tensor classes;  ///< of each state
  Tensor skip;     ///< 0 where a state may follow that two before, else impossible
  Tensor last;     ///< 0 for the two final states, else impossible
  int64_t count;

  CtcStates(CallContext& c, int64_t blank, DType dtype) {
    const Tensor &labels = c.operand(1), &lengths = c.operand(3);
    const Dim batch = labels.dim(0);
    const int64_t n = constant_size(c.op().name(), labels, 1);
    count = 2 * n + 1;
    const Tensor gap = ops::full({batch, Dim(n), Dim(1)}, AttrValue(blank), DType::kI64);
    const Tensor pairs =
        ops::reshape(ops::concat({gap, ops::unsqueeze(labels, {2})}, 2), {batch, Dim(2 * n)});
    classes = ops::concat({pairs, ops::full({batch, Dim(1)}, AttrValue(blank), DType::kI64)}, 1);
    const Tensor before =
        slice_axis(ops::pad(classes, {0, 0, 2, 0}, "constant", -1.0), 1, 0, count);
    const auto only = [&](const Tensor& kept) {
      return ops::where(kept, ops::full(Shape(), 0.0, dtype),
                        ops::full(Shape(), kImpossible, dtype));
    };
    skip = only(
        ops::logical_and(ops::not_equal(classes, integer(blank)), ops::not_equal(classes, before)));
    const Tensor place = ops::unsqueeze(range_of(Dim(count), DType::kI64), {0});
    const Tensor end = column(lengths * integer(2));
    last = only(
        ops::logical_and(ops::less_equal(place, end), ops::greater_equal(place, end - integer(1))));
  }
};

/// Forward variables of CTC after each step.
Tensors ctc_forward(CallContext& c, const CtcStates& s, const Tensors& emitted) {
  const DType dtype = emitted[0].dtype();
  const Tensor place = ops::unsqueeze(range_of(Dim(s.count), DType::kI64), {0});
  Tensor alpha = ops::where(ops::less_than(place, integer(2)), emitted[0],
                            ops::full(Shape(), kImpossible, dtype));
  Tensors out = {alpha};
  for (size_t t = 1; t < emitted.size(); ++t) {
    const Tensor next =
        log_sum({alpha, shifted(alpha, 1), shifted(alpha, 2) + s.skip}) + emitted[t];
    const Tensor runs = column(ops::less_than(integer(static_cast<int64_t>(t)), c.operand(2)));
    alpha = ops::where(runs, next, alpha);
    out.push_back(alpha);
  }
  return out;
}

Tensors ctc_emitted(CallContext& c, const CtcStates& s) {
  Tensors out;
  const int64_t steps = constant_size(c.op().name(), c.operand(0), 0);
  if (steps == 0) reject(c.op().name(), "log_probs ", c.operand(0).type(), " has no steps");
  for (int64_t t = 0; t < steps; ++t)
    out.push_back(ops::gather_along(at(c.operand(0), 0, t), s.classes, 1));
  return out;
}

void check_ctc(InferContext& c) {
  c.check(c.rank(0) == 3, "log_probs must be [steps, batch, classes], not ", c.type(0));
  c.check(c.rank(1) == 2, "labels must be [batch, length], not ", c.type(1));
  for (size_t i = 1; i < 4; ++i) {
    c.check(c.rank(i) == (i == 1 ? 2 : 1), c.op().operands()[i].name, " must be [batch",
            i == 1 ? ", length" : "", "], not ", c.type(i));
    c.require_equal(c.shape(i)[0], c.shape(0)[1],
                    str(c.op().operands()[i].name, " and log_probs differ in their batch"));
  }
  const int64_t blank = c.attrs()[static_cast<size_t>(c.op().attr_index("blank"))].as_int();
  c.check(blank >= 0 && Dim(blank).less(c.shape(0)[2]) != false, "blank ", blank,
          " is not one of the ", c.shape(0)[2], " classes");
}

void check_rnnt(InferContext& c) {
  c.check(c.rank(0) == 3 && c.rank(1) == 3, "blank and label must have 3 dimensions");
  for (size_t i = 0; i < 2; ++i)
    c.require_equal(c.shape(0)[i], c.shape(1)[i], "blank and label differ in size");
  c.require_equal(c.shape(0)[2], c.shape(1)[2] + 1, "blank must have one place more than label");
  for (size_t i = 2; i < 4; ++i) {
    c.check(c.rank(i) == 1, c.op().operands()[i].name, " must be [batch], not ", c.type(i));
    c.require_equal(c.shape(i)[0], c.shape(0)[0],
                    str(c.op().operands()[i].name, " and the logits differ in their batch"));
  }
}

/// The lattice of a transducer: values [n] by step and place.
using Lattice = std::vector<Tensors>;

Lattice lattice_of(std::string_view op, const Tensor& x) {
  const int64_t steps = constant_size(op, x, 1), places = constant_size(op, x, 2);
  if (steps * places > kMaxSteps)
    reject(op, "the gradient of the gradient needs at most ", kMaxSteps,
           " steps times labels, not ", steps * places);
  Lattice out(static_cast<size_t>(steps));
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t u = 0; u < places; ++u)
      out[static_cast<size_t>(t)].push_back(at(at(x, 1, t), 1, u));
  return out;
}

Tensor stacked(const Lattice& x) {
  Tensors rows;
  for (const Tensors& row : x) rows.push_back(ops::stack(row, 1));
  return ops::stack(rows, 1);
}

/// Forward variables.
Lattice rnnt_forward(const Lattice& blank, const Lattice& label) {
  Lattice out = blank;
  for (size_t t = 0; t < blank.size(); ++t)
    for (size_t u = 0; u < blank[t].size(); ++u) {
      Tensors from;
      if (t > 0) from.push_back(out[t - 1][u] + blank[t - 1][u]);
      if (u > 0) from.push_back(out[t][u - 1] + label[t][u - 1]);
      out[t][u] = from.empty()       ? zeros_like(blank[t][u])
                  : from.size() == 1 ? from[0]
                                     : log_sum(from);
    }
  return out;
}

/// 1 at the last step and place of each sequence, [n, t, l + 1].
Tensor rnnt_end(const Tensor& blank, const Tensor& input_lengths, const Tensor& label_lengths) {
  const auto is = [](const Tensor& lengths, const Dim& size) {
    return ops::equal(ops::unsqueeze(range_of(size, DType::kI64), {0}), column(lengths));
  };
  return mask_of(ops::logical_and(ops::unsqueeze(is(input_lengths - integer(1), blank.dim(1)), {2}),
                                  ops::unsqueeze(is(label_lengths, blank.dim(2)), {1})),
                 blank);
}

}  // namespace

void infer_ctc_alignment(InferContext& c) {
  check_ctc(c);
  c.result(c.dtype(0), {c.shape(0)[1]});
}

void infer_ctc_occupancy(InferContext& c) {
  check_ctc(c);
  c.result(c.dtype(0), c.shape(0));
}

void infer_rnnt_alignment(InferContext& c) {
  check_rnnt(c);
  c.result(c.dtype(0), {c.shape(0)[0]});
}

void infer_rnnt_occupancy(InferContext& c) {
  check_rnnt(c);
  c.result(c.dtype(0), c.shape(0));
  c.result(c.dtype(1), c.shape(1));
}

Tensors decompose_ctc_loss(CallContext& c) {
  const auto a = c.attrs_as<CtcLossAttrs>();
  constexpr const char* kName = "ctc_loss";
  Tensor x = in_compute_type(c.operand(0));
  if (x.ndim() != 3) reject(kName, "log_probs must be [steps, batch, classes], not ", x.type());
  const Tensor labels = int64_of(kName, "labels", c.operand(1), 2),
               lengths = int64_of(kName, "input_lengths", c.operand(2), 1),
               label_lengths = int64_of(kName, "label_lengths", c.operand(3), 1);
  if (a.norm_by_times) {  // of the gradient only
    const Tensor share =
        1.0 / ops::maximum(ops::reshape(ops::cast(lengths, x.dtype()), {1, -1, 1}), number(1.0));
    x = x * share + ops::detach(x * (1.0 - share));
  }
  Tensor loss =
      ops::ctc_alignment(ops::log_softmax(x, -1), labels, lengths, label_lengths, a.blank);
  if (a.zero_infinity) loss = ops::where(ops::isinf(loss), number(0.0), loss);
  if (a.reduction == "mean") loss = loss / ops::cast(label_lengths, loss.dtype());
  return {ops::cast(reduce_loss(loss, a.reduction), c.operand(0).dtype())};
}

Tensors decompose_ctc_alignment(CallContext& c) {
  const CtcStates s(c, c.attrs_as<CtcAlignmentAttrs>().blank, c.operand(0).dtype());
  const Tensors alpha = ctc_forward(c, s, ctc_emitted(c, s));
  const Tensor total = ops::logsumexp(alpha.back() + s.last, Axes{1});
  return {ops::where(ops::greater_than(total, number(kImpossible / 2)), -total, number(INFINITY))};
}

Tensors vjp_ctc_alignment(VjpContext& c) {
  Tensors out = c.gradients();
  if (c.needs(0))
    out[0] = -(ops::reshape(c.cotangent(), {1, -1, 1}) *
               ops::ctc_occupancy(c.operand(0), c.operand(1), c.operand(2), c.operand(3),
                                  c.attrs_as<CtcAlignmentAttrs>().blank));
  return out;
}

Tensors decompose_ctc_occupancy(CallContext& c) {
  const Tensor& x = c.operand(0);
  const CtcStates s(c, c.attrs_as<CtcOccupancyAttrs>().blank, x.dtype());
  const Tensors emitted = ctc_emitted(c, s), alpha = ctc_forward(c, s, emitted);
  const Tensor total = ops::logsumexp(alpha.back() + s.last, Axes{1}, true);
  // Backward variables, without the emission of their own step.
  Tensor beta = s.last;
  Tensors out(emitted.size());
  const Tensor none = zeros_like(at(x, 0, 0));
  for (size_t t = emitted.size(); t-- > 0;) {
    if (t + 1 < emitted.size()) {
      const Tensor after = beta + emitted[t + 1];
      const Tensor next = log_sum({after, shifted(after, -1), shifted(after + s.skip, -2)});
      const Tensor runs =
          column(ops::less_than(integer(static_cast<int64_t>(t) + 1), c.operand(2)));
      beta = ops::where(runs, next, beta);
    }
    const Tensor lives = mask_of(
        ops::logical_and(column(ops::less_than(integer(static_cast<int64_t>(t)), c.operand(2))),
                         ops::greater_than(total, number(kImpossible / 2))),
        x);
    const Tensor share = ops::exp(ops::minimum(alpha[t] + beta - total, number(0.0))) * lives;
    out[t] = ops::scatter_along(none, s.classes, share, 1, "add");
  }
  return {ops::stack(out, 0)};
}

Tensors decompose_rnnt_loss(CallContext& c) {
  const auto a = c.attrs_as<RnntLossAttrs>();
  constexpr const char* kName = "rnnt_loss";
  const Tensor x = in_compute_type(c.operand(0));
  if (x.ndim() != 4)
    reject(kName, "input must be [batch, steps, length + 1, classes], not ", x.type());
  const Tensor label = int64_of(kName, "label", c.operand(1), 2),
               lengths = int64_of(kName, "input_lengths", c.operand(2), 1),
               label_lengths = int64_of(kName, "label_lengths", c.operand(3), 1);
  const Dim places = label.dim(1);
  if (label.dim(0).equals(x.dim(0)) == false || x.dim(2).equals(places + 1) == false)
    reject(kName, "label ", label.type(), " does not match input ", x.type());
  check_32_bits(kName, "blank", a.blank);
  if (a.blank < 0 || x.dim(3).less(a.blank + 1) == true)
    reject(kName, "blank ", a.blank, " is not one of the ", x.dim(3), " classes");
  const Tensor blank = at(x, 3, a.blank);
  const Tensor index = ops::expand(ops::reshape(label, {label.dim(0), Dim(1), places, Dim(1)}),
                                   {x.dim(0), x.dim(1), places, Dim(1)});
  Tensor own = ops::squeeze(ops::gather_along(slice_axis(x, 2, 0, places), index, 3), Axes{3});
  if (a.fastemit_lambda != 0)  // of the gradient only
    own = own * (1 + a.fastemit_lambda) - ops::detach(own * a.fastemit_lambda);
  const Tensor loss = ops::rnnt_alignment(blank, own, lengths, label_lengths);
  return {ops::cast(reduce_loss(loss, a.reduction), c.operand(0).dtype())};
}

Tensors decompose_rnnt_alignment(CallContext& c) {
  const std::string_view op = c.op().name();
  const Lattice blank = lattice_of(op, c.operand(0)), label = lattice_of(op, c.operand(1));
  if (blank.empty()) reject(op, "there are no steps");
  const Tensor all = stacked(rnnt_forward(blank, label)) + c.operand(0);
  return {-ops::sum(all * rnnt_end(c.operand(0), c.operand(2), c.operand(3)), Axes{1, 2})};
}

Tensors vjp_rnnt_alignment(VjpContext& c) {
  Tensors out = c.gradients();
  const Tensors shares =
      ops::rnnt_occupancy(c.operand(0), c.operand(1), c.operand(2), c.operand(3));
  const Tensor g = ops::reshape(c.cotangent(), {-1, 1, 1});
  for (size_t i = 0; i < 2; ++i)
    if (c.needs(i)) out[i] = -(g * shares[i]);
  return out;
}

Tensors decompose_rnnt_occupancy(CallContext& c) {
  const std::string_view op = c.op().name();
  const Lattice blank = lattice_of(op, c.operand(0)), label = lattice_of(op, c.operand(1));
  if (blank.empty()) reject(op, "there are no steps");
  const Tensor end = rnnt_end(c.operand(0), c.operand(2), c.operand(3));
  const Lattice alpha = rnnt_forward(blank, label), ends = lattice_of(op, end);
  const Tensor total = ops::sum((stacked(alpha) + c.operand(0)) * end, Axes{1, 2});
  const auto share = [&](const Tensor& log) {
    return ops::exp(ops::minimum(log - total, number(0.0)));
  };
  // Backward variables: what follows a place.
  Lattice beta = blank, blanks = blank, labels = label;
  for (size_t t = blank.size(); t-- > 0;)
    for (size_t u = blank[t].size(); u-- > 0;) {
      const Tensor impossible = ops::full(Shape(), kImpossible, total.dtype());
      const Tensor follow = t + 1 < blank.size() ? beta[t + 1][u] : impossible;
      const Tensor through =
          ops::where(ops::greater_than(ends[t][u], number(0.5)), zeros_like(total), follow) +
          blank[t][u];
      blanks[t][u] = share(alpha[t][u] + through);
      beta[t][u] = through;
      if (u + 1 == blank[t].size()) continue;
      const Tensor right = beta[t][u + 1] + label[t][u];
      labels[t][u] = share(alpha[t][u] + right);
      beta[t][u] = log_sum({through, right});
    }
  const Tensor second = label[0].empty() ? zeros_like(c.operand(1)) : stacked(labels);
  return {stacked(blanks), second};
}

}  // namespace paddle::rules
