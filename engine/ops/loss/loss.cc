// Rules of loss.yaml.

#include <cmath>
#include <numbers>

#include "ops/core/compose.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/loss.h"
#include "ops/generated/loss_rules.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

Tensor rectified(const Tensor& x) { return ops::relu(x); }

/// Where a +1 / -1 label is +1, as the dtype of `like`; other labels count as neither.
Tensor is(const Tensor& label, double value, const Tensor& like) {
  return mask_of(ops::equal(label, number(value)), like);
}

void same_sizes(const char* op, const Tensor& a, const Tensor& b) {
  require_same_shape(op, "input", a, "label", b);
}

/// log(1 + exp(-x)) without overflow.
Tensor softplus_of_minus(const Tensor& x) { return -ops::log_sigmoid(x); }

}  // namespace

void require_same_shape(std::string_view op, std::string_view x_name, const Tensor& x,
                        std::string_view y_name, const Tensor& y) {
  if (y.ndim() == 0) return;
  bool same = x.ndim() == y.ndim();
  for (int64_t i = 0; same && i < x.ndim(); ++i) same = x.dim(i).equals(y.dim(i)).value_or(true);
  if (!same)
    reject(op, x_name, " is ", x.type(), ", ", y_name, " is ", y.type(),
           ": expected equal shapes; index, squeeze or reshape one of them");
}

void require_no_expansion(std::string_view op, std::string_view name, const Tensor& factor,
                          const Tensor& loss) {
  bool fits = factor.ndim() <= loss.ndim();
  for (int64_t i = 1; fits && i <= factor.ndim(); ++i)
    fits = is_one(factor.dim(-i)) || factor.dim(-i).equals(loss.dim(-i)).value_or(true);
  if (!fits)
    reject(op, name, " is ", factor.type(), ", which does not broadcast to the shape of ",
           loss.type());
}

// input is [n, classes, …], label [n, …].
Tensors decompose_nll_loss(CallContext& c) {
  const auto a = c.attrs_as<NllLossAttrs>();
  const Tensor &x = c.operand(0), &label = c.operand(1);
  if (x.ndim() < 2 || label.ndim() != x.ndim() - 1)
    fail(ErrorCode::kUsage, "nll_loss: input is ", x.type(), ", label is ", label.type());
  for (int64_t i = 0; i < label.ndim(); ++i)
    if (label.dim(i).equals(x.dim(i == 0 ? 0 : i + 1)) == false)
      fail(ErrorCode::kUsage, "nll_loss: input is ", x.type(), ", label is ", label.type());
  const Tensor kept = ops::not_equal(label, Tensor::number(a.ignore_index));
  const Tensor safe = ops::where(kept, label, Tensor::number(int64_t{0}));
  const Tensor picked = ops::squeeze(ops::gather_along(x, ops::unsqueeze(safe, {1}), 1), Axes{1});
  Tensor weight = mask_of(kept, x);
  if (c.has(2)) {
    const Tensor each = ops::index_select(c.operand(2), ops::reshape(safe, Shape{-1}), 0);
    weight = ops::where(kept, ops::reshape(each, label.shape()), Tensor::number(0.0));
  }
  // Selected, not multiplied by 0: an ignored row may hold NaN or infinity.
  const Tensor loss = -ops::where(kept, picked * weight, Tensor::number(0.0));
  if (a.reduction == "none") return {loss};
  if (a.reduction == "sum") return {ops::sum(loss)};
  return {ops::sum(loss) / ops::sum(weight)};
}

Tensors decompose_l1_loss(CallContext& c) {
  same_sizes("l1_loss", c.operand(0), c.operand(1));
  return {reduce_loss(ops::abs(c.operand(0) - c.operand(1)), c.attrs_as<L1LossAttrs>().reduction)};
}

Tensors decompose_smooth_l1_loss(CallContext& c) {
  const auto a = c.attrs_as<SmoothL1LossAttrs>();
  same_sizes("smooth_l1_loss", c.operand(0), c.operand(1));
  const Tensor gap = c.operand(0) - c.operand(1), size = ops::abs(gap);
  const Tensor near = ops::less_than(size, number(a.delta));
  Tensor loss = ops::where(near, gap * gap * 0.5, size * a.delta - 0.5 * a.delta * a.delta);
  if (!a.is_huber) loss = loss / a.delta;
  return {reduce_loss(loss, a.reduction)};
}

Tensors decompose_kl_div(CallContext& c) {
  const auto a = c.attrs_as<KlDivAttrs>();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  same_sizes("kl_div", x, y);
  Tensor loss;
  if (a.log_target) {
    loss = ops::exp(y) * (y - x);
  } else {
    // 0 log 0 is 0.
    const Tensor positive = ops::greater_than(y, number(0));
    const Tensor safe = ops::where(positive, y, number(1.0));
    loss = ops::where(positive, y * (ops::log(safe) - x), number(0.0));
  }
  if (a.reduction == "batchmean")
    return {ops::sum(loss) / dim_value(x.ndim() > 0 ? x.dim(0) : Dim(1), x.dtype())};
  return {reduce_loss(loss, a.reduction)};
}

// Logarithms are held above -100, so that a certain error costs a finite amount.
Tensors decompose_binary_cross_entropy(CallContext& c) {
  const auto a = c.attrs_as<BinaryCrossEntropyAttrs>();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  same_sizes("binary_cross_entropy", x, y);
  const auto log = [](const Tensor& t) { return ops::maximum(ops::log(t), number(-100.0)); };
  Tensor loss = -(y * log(x) + (1.0 - y) * log(1.0 - x));
  if (c.has(2)) {
    require_no_expansion("binary_cross_entropy", "weight", c.operand(2), loss);
    loss = loss * c.operand(2);
  }
  return {reduce_loss(loss, a.reduction)};
}

Tensors decompose_hinge_embedding_loss(CallContext& c) {
  const auto a = c.attrs_as<HingeEmbeddingLossAttrs>();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  same_sizes("hinge_embedding_loss", x, y);
  const Tensor loss = ops::where(ops::equal(y, number(1)), x, number(0.0)) +
                      ops::where(ops::equal(y, number(-1)), rectified(a.margin - x), number(0.0));
  return {reduce_loss(loss, a.reduction)};
}

Tensors decompose_margin_ranking_loss(CallContext& c) {
  const auto a = c.attrs_as<MarginRankingLossAttrs>();
  const Tensor &x = c.operand(0), &other = c.operand(1), &label = c.operand(2);
  require_same_shape("margin_ranking_loss", "input", x, "other", other);
  require_no_expansion("margin_ranking_loss", "label", label, x);
  return {reduce_loss(rectified(a.margin - label * (x - other)), a.reduction)};
}

Tensors decompose_cosine_embedding_loss(CallContext& c) {
  const auto a = c.attrs_as<CosineEmbeddingLossAttrs>();
  const Tensor &x = c.operand(0), &y = c.operand(1), &label = c.operand(2);
  same_sizes("cosine_embedding_loss", x, y);
  const auto total = [](const Tensor& t) { return ops::sum(t, Axes{-1}); };
  const Tensor cosine = total(x * y) / ops::sqrt((total(x * x) + 1e-12) * (total(y * y) + 1e-12));
  require_same_shape("cosine_embedding_loss", "cosine of the inputs", cosine, "label", label);
  const Tensor loss =
      is(label, 1, cosine) * (1.0 - cosine) + is(label, -1, cosine) * rectified(cosine - a.margin);
  return {reduce_loss(loss, a.reduction)};
}

Tensors decompose_soft_margin_loss(CallContext& c) {
  const Tensor& x = c.operand(0);
  same_sizes("soft_margin_loss", x, c.operand(1));
  return {reduce_loss(softplus_of_minus(ops::cast(c.operand(1), x.dtype()) * x),
                      c.attrs_as<SoftMarginLossAttrs>().reduction)};
}

Tensors decompose_triplet_margin_loss(CallContext& c) {
  const auto a = c.attrs_as<TripletMarginLossAttrs>();
  const Tensor &x = c.operand(0), &positive = c.operand(1), &negative = c.operand(2);
  same_sizes("triplet_margin_loss", x, positive);
  same_sizes("triplet_margin_loss", x, negative);
  if (!(a.margin >= 0))
    fail(ErrorCode::kUsage, "triplet_margin_loss: margin must not be negative, not ", a.margin);
  const auto distance = [&](const Tensor& s, const Tensor& t) {
    return ops::pairwise_distance(s, t, a.p, a.epsilon);
  };
  Tensor away = distance(x, negative);
  if (a.swap) away = ops::minimum(away, distance(positive, negative));
  return {reduce_loss(rectified(distance(x, positive) - away + a.margin), a.reduction)};
}

Tensors decompose_log_loss(CallContext& c) {
  const double e = c.attrs_as<LogLossAttrs>().epsilon;
  const Tensor &x = c.operand(0), &y = c.operand(1);
  same_sizes("log_loss", x, y);
  return {-(y * ops::log(x + e)) - (1.0 - y) * ops::log(1.0 - x + e)};
}

Tensors decompose_square_error_cost(CallContext& c) {
  same_sizes("square_error_cost", c.operand(0), c.operand(1));
  return {ops::square(c.operand(0) - c.operand(1))};
}

Tensors decompose_sigmoid_focal_loss(CallContext& c) {
  const auto a = c.attrs_as<SigmoidFocalLossAttrs>();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  same_sizes("sigmoid_focal_loss", x, y);
  const Tensor entropy = ops::binary_cross_entropy_with_logits(x, y, {}, "none");
  const Tensor p = ops::sigmoid(x);
  const Tensor hit = p * y + (1.0 - p) * (1.0 - y);
  const Tensor weight = y * a.alpha + (1.0 - y) * (1 - a.alpha);
  Tensor loss = weight * ops::pow(1.0 - hit, number(a.gamma)) * entropy;
  if (c.has(2)) {
    require_no_expansion("sigmoid_focal_loss", "normalizer", c.operand(2), loss);
    loss = loss / c.operand(2);
  }
  return {reduce_loss(loss, a.reduction)};
}

Tensors decompose_label_smooth(CallContext& c) {
  const double e = c.attrs_as<LabelSmoothAttrs>().epsilon;
  if (!(e >= 0 && e <= 1))
    fail(ErrorCode::kUsage, "label_smooth: epsilon must lie in [0, 1], not ", e);
  const Tensor& label = c.operand(0);
  if (c.has(1)) return {label * (1 - e) + c.operand(1) * e};
  return {label * (1 - e) + e / dim_value(label.dim(-1), label.dtype())};
}

Tensors decompose_dice_loss(CallContext& c) {
  const double e = c.attrs_as<DiceLossAttrs>().epsilon;
  const Tensor &x = c.operand(0), &label = c.operand(1);
  bool fits = label.ndim() == x.ndim() && x.ndim() > 1 && label.dim(-1).equals(1) != false;
  for (int64_t i = 0; fits && i + 1 < x.ndim(); ++i) fits = label.dim(i).equals(x.dim(i)) != false;
  if (!fits)
    reject("dice_loss", "expected a label of input's shape with a last axis of size 1, found ",
           label.type(), " for ", x.type());
  const Tensor flat = ops::squeeze(label, Axes{-1});
  const Tensor hot = ops::cast(ops::one_hot(flat, x.dim(-1).value()), x.dtype());
  require_same_shape("dice_loss", "input", x, "one-hot label", hot);
  Axes axes;
  for (int64_t i = 1; i < x.ndim(); ++i) axes.push_back(i);
  const Tensor overlap = ops::sum(x * hot, axes), total = ops::sum(x, axes) + ops::sum(hot, axes);
  return {ops::mean(1.0 - overlap * 2.0 / (total + e))};
}

namespace {

bool has_negative(const Array& array) {
  const Array values = array.on_host();
  for (int64_t i = 0; i < values.size(); ++i)
    if (values.number(i) < 0) return true;
  return false;
}

}  // namespace

Tensors decompose_gaussian_nll_loss(CallContext& c) {
  const auto a = c.attrs_as<GaussianNllLossAttrs>();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  same_sizes("gaussian_nll_loss", x, y);
  Tensor given = c.operand(2);
  // The variance may be one for each row: the last axis of size 1, or left out.
  if (given.ndim() + 1 == x.ndim()) given = ops::unsqueeze(given, {-1});
  bool fits = given.ndim() == x.ndim();
  for (int64_t i = 0; fits && i < x.ndim(); ++i)
    fits = given.dim(i).equals(x.dim(i)) != false ||
           (i + 1 == x.ndim() && given.dim(i).equals(1) == true);
  if (!fits)
    fail(ErrorCode::kUsage, "gaussian_nll_loss: variance ", c.operand(2).type(),
         " does not fit input ", x.type());
  if (given.is_concrete() && has_negative(given.array()))
    fail(ErrorCode::kUsage, "gaussian_nll_loss: the variance has negative elements");
  // Held above epsilon for the value; the gradient flows as if it were not.
  const Tensor variance = given + ops::detach(ops::maximum(given, number(a.epsilon)) - given);
  Tensor loss = (ops::log(variance) + ops::square(x - y) / variance) * 0.5;
  if (a.full) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return {reduce_loss(loss, a.reduction)};
}

Tensors decompose_poisson_nll_loss(CallContext& c) {
  const auto a = c.attrs_as<PoissonNllLossAttrs>();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  same_sizes("poisson_nll_loss", x, y);
  Tensor loss = a.log_input ? ops::exp(x) - y * x : x - y * ops::log(x + a.epsilon);
  if (a.full) {
    // Stirling's approximation of log y!, for y above 1.
    const Tensor large = ops::greater_than(y, number(1));
    const Tensor safe = ops::where(large, y, number(2.0));
    const Tensor stirling =
        safe * ops::log(safe) - safe + ops::log(safe * (2 * std::numbers::pi)) * 0.5;
    loss = loss + ops::where(large, stirling, number(0.0));
  }
  return {reduce_loss(loss, a.reduction)};
}

Tensors decompose_multi_label_soft_margin_loss(CallContext& c) {
  const Tensor &x = c.operand(0), &y = c.operand(1);
  same_sizes("multi_label_soft_margin_loss", x, y);
  Tensor loss = -(y * ops::log_sigmoid(x) + (1.0 - y) * ops::log_sigmoid(-x));
  if (c.has(2)) {
    require_no_expansion("multi_label_soft_margin_loss", "weight", c.operand(2), loss);
    loss = loss * c.operand(2);
  }
  return {reduce_loss(ops::mean(loss, Axes{-1}),
                      c.attrs_as<MultiLabelSoftMarginLossAttrs>().reduction)};
}

Tensors decompose_mse_loss(CallContext& c) {
  require_same_shape("mse_loss", "input", c.operand(0), "label", c.operand(1));
  return {
      reduce_loss(ops::square(c.operand(0) - c.operand(1)), c.attrs_as<MseLossAttrs>().reduction)};
}

Tensors decompose_multi_margin_loss(CallContext& c) {
  const auto a = c.attrs_as<MultiMarginLossAttrs>();
  const Tensor &x = c.operand(0), &label = c.operand(1);
  if (x.ndim() != 2 || label.ndim() != 1)
    reject("multi_margin_loss", "expected input [n, classes] and label [n], found ", x.type(),
           " and ", label.type());
  if (x.dim(0).equals(label.dim(0)) == false)
    reject("multi_margin_loss", "input ", x.type(), " and label ", label.type(), " differ in n");
  if (c.has(2) && c.operand(2).dim(-1).equals(x.dim(1)) == false)
    reject("multi_margin_loss", "weight ", c.operand(2).type(), " does not fit the classes of ",
           x.type());
  if (a.p != 1 && a.p != 2) reject("multi_margin_loss", "p must be 1 or 2, not ", a.p);
  const Tensor place = ops::unsqueeze(ops::cast(label, DType::kI64), {1});
  const Tensor right = ops::gather_along(x, place, 1);
  Tensor each = x - right + a.margin;
  Tensor weight;
  if (c.has(2)) weight = ops::unsqueeze(ops::index_select(c.operand(2), label), {1});
  each = ops::relu(each);
  if (a.p == 2) each = ops::square(each);
  if (weight.defined()) each = each * weight;
  const Tensor others = ops::not_equal(ops::unsqueeze(range_of(x.dim(1), DType::kI64), {0}), place);
  const Tensor sum = ops::sum(each * mask_of(others, each), Axes{1});
  return {reduce_loss(sum / dim_value(x.dim(1), x.dtype()), a.reduction)};
}

Tensors decompose_multi_label_margin_loss(CallContext& c) {
  const auto a = c.attrs_as<MultiLabelMarginLossAttrs>();
  Tensor x = c.operand(0), label = c.operand(1);
  require_same_shape("multi_label_margin_loss", "input", x, "label", label);
  const bool one = x.ndim() == 1;
  if (!one && x.ndim() != 2)
    reject("multi_label_margin_loss", "expected [n, classes] or [classes], found ", x.type());
  if (one) {
    x = ops::unsqueeze(x, {0});
    label = ops::unsqueeze(label, {0});
  }
  // Labels count up to the first negative one.
  const Tensor zero = integer(0);
  const Tensor before = ops::cumprod(ops::cast(ops::greater_equal(label, zero), DType::kI64),
                                     std::optional<int64_t>(1));
  const Tensor is_label = ops::greater_than(before, zero);
  const Tensor place = ops::where(is_label, ops::cast(label, DType::kI64), zero);
  const Tensor marked = ops::scatter_along(zeros_like(before), place, before, 1, "add");
  const Tensor is_other = ops::equal(marked, zero);
  const Tensor gap = ops::unsqueeze(x, {1}) - ops::unsqueeze(ops::gather_along(x, place, 1), {2});
  const Tensor margin = ops::relu(gap + 1.0);  // [n, labels, classes]
  const Tensor pairs =
      ops::logical_and(ops::unsqueeze(is_label, {2}), ops::unsqueeze(is_other, {1}));
  const Tensor sum =
      ops::sum(margin * mask_of(pairs, margin), Axes{1, 2}) / dim_value(x.dim(1), x.dtype());
  return {reduce_loss(one ? ops::squeeze(sum, Axes{0}) : sum, a.reduction)};
}

Tensors decompose_npair_loss(CallContext& c) {
  const auto a = c.attrs_as<NpairLossAttrs>();
  const Tensor &anchor = c.operand(0), &positive = c.operand(1);
  require_same_shape("npair_loss", "anchor", anchor, "positive", positive);
  const Tensor label = ops::reshape(c.operand(2), Shape{-1});
  const Tensor same =
      mask_of(ops::equal(ops::unsqueeze(label, {1}), ops::unsqueeze(label, {0})), anchor);
  const Tensor share = same / ops::sum(same, Axes{1}, std::nullopt, true);
  const auto size = [](const Tensor& t) { return ops::mean(ops::sum(ops::square(t), Axes{1})); };
  const Tensor penalty = (size(anchor) + size(positive)) * (0.25 * a.l2_reg);
  const Tensor similar = ops::matmul(anchor, positive, false, true);
  const Tensor entropy = ops::cross_entropy(similar, share, {}, -100, "none", true);
  const Tensor rows = ops::reshape(entropy, {label.dim(0), Dim(1)});
  return {penalty + ops::mean(ops::sum(share * rows, Axes{0}))};
}

}  // namespace paddle::rules
