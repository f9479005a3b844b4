// Rules of classes.yaml.

#include <bit>
#include <cmath>
#include <functional>

#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/loss.h"
#include "ops/generated/loss_rules.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/random.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"

namespace paddle::rules {
namespace {

/// Integer labels [n] from [n] or [n, 1].
Tensor class_labels(std::string_view op, const Tensor& label, const Dim& rows) {
  const bool column = label.ndim() == 2 && is_one(label.dim(1));
  if ((label.ndim() != 1 && !column) || label.dim(0).equals(rows) == false)
    reject(op, "label must be [", rows, "] or [", rows, ", 1], not ", label.type());
  return ops::cast(flat(label), DType::kI64);
}

void check_matrix(std::string_view op, const char* name, const Tensor& x) {
  if (x.ndim() != 2) reject(op, name, " must be a matrix, not ", x.type());
}

}  // namespace

Tensors decompose_hsigmoid_loss(CallContext& c) {
  const auto a = c.attrs_as<HsigmoidLossAttrs>();
  constexpr const char* kName = "hsigmoid_loss";
  const Tensor &x = c.operand(0), &weight = c.operand(2);
  check_matrix(kName, "input", x);
  check_matrix(kName, "weight", weight);
  if (weight.dim(1).equals(x.dim(1)) == false)
    reject(kName, "weight ", weight.type(), " does not match input ", x.type());
  const Tensor label = class_labels(kName, c.operand(1), x.dim(0));
  if (c.has(4) != c.has(5)) reject(kName, "path_table and path_code must be given together");
  Tensor node, bit, inside;  // along the path, [n, length]
  if (c.has(4)) {
    node = ops::cast(c.operand(4), DType::kI64);
    bit = c.operand(5);
    check_matrix(kName, "path_table", node);
    check_matrix(kName, "path_code", bit);
    if (!same_shape(node.shape(), bit.shape()) || node.dim(0).equals(x.dim(0)) == false)
      reject(kName, "path_table ", node.type(), " and path_code ", bit.type(),
             " do not match input ", x.type());
    inside = ops::greater_equal(node, integer(0));
  } else {
    if (a.num_classes < 2 || a.num_classes > int64_t{1} << 40)
      reject(kName, "num_classes must be at least 2, not ", a.num_classes);
    if (weight.dim(0).less(a.num_classes - 1) == true)
      reject(kName, "weight ", weight.type(), " has fewer rows than num_classes - 1");
    const auto length =
        static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(2 * a.num_classes - 1))) - 1;
    const Tensor code = ops::unsqueeze(label + integer(a.num_classes), {1});
    const Tensor depth = ops::unsqueeze(range_of(Dim(length), DType::kI64), {0});
    const Tensor above = ops::bitwise_right_shift(code, depth + integer(1));
    node = above - integer(1);
    bit = ops::remainder(ops::bitwise_right_shift(code, depth), integer(2));
    inside = ops::greater_equal(above, integer(1));
  }
  const Dim length = node.dim(1);
  const Tensor row = flat(ops::maximum(node, integer(0)));
  const Tensor own = ops::reshape(ops::index_select(weight, row, 0), {x.dim(0), length, x.dim(1)});
  Tensor logit = ops::squeeze(ops::matmul(own, ops::unsqueeze(x, {2})), Axes{2});
  if (c.has(3)) {
    const Tensor bias = flat(c.operand(3));
    if (bias.dim(0).equals(weight.dim(0)) == false)
      reject(kName, "bias ", c.operand(3).type(), " does not match weight ", weight.type());
    logit = logit + ops::reshape(ops::index_select(bias, row, 0), {x.dim(0), length});
  }
  const Tensor kept = mask_of(inside, logit);
  logit = ops::clip(logit, -40.0, 40.0) * kept;
  // Places after the end of a path count as log 2, as in PaddlePaddle.
  const Tensor loss = ops::softplus(logit) - ops::cast(bit, x.dtype()) * kept * logit;
  return {ops::sum(loss, Axes{1}, std::nullopt, true)};
}

Tensors decompose_margin_cross_entropy(CallContext& c) {
  const auto a = c.attrs_as<MarginCrossEntropyAttrs>();
  constexpr const char* kName = "margin_cross_entropy";
  const Tensor& logits = c.operand(0);
  if (!a.group.is_none() && !(a.group.is_bool() && !a.group.as_bool()))
    reject(kName, "classes divided over processes (group) are not supported");
  check_matrix(kName, "logits", logits);
  const Tensor label = ops::unsqueeze(class_labels(kName, c.operand(1), logits.dim(0)), {1});
  const Tensor own = ops::gather_along(logits, label, 1);
  Tensor moved = own;
  if (a.margin1 != 1 || a.margin2 != 0) moved = ops::cos(ops::acos(own) * a.margin1 + a.margin2);
  if (a.margin3 != 0) moved = moved - a.margin3;
  const Tensor scaled = ops::scatter_along(logits, label, moved, 1, "assign") * a.scale;
  const Tensor log_probs = ops::log_softmax(scaled, 1);
  const Tensor loss = -ops::gather_along(log_probs, label, 1);
  Tensors out = {reduce_loss(loss, a.reduction.value_or("none"))};
  if (a.return_softmax) out.push_back(ops::exp(log_probs));
  return out;
}

Tensors decompose_nce(CallContext& c) {
  const auto a = c.attrs_as<NceAttrs>();
  constexpr const char* kName = "nce";
  const Tensor &x = c.operand(0), &weight = c.operand(2);
  check_matrix(kName, "input", x);
  check_matrix(kName, "weight", weight);
  const int64_t drawn = a.num_neg_samples.value_or(10);
  if (a.num_total_classes < 1 || weight.dim(0).equals(a.num_total_classes) == false ||
      weight.dim(1).equals(x.dim(1)) == false)
    reject(kName, "weight must be [", a.num_total_classes, ", ", x.dim(1), "], not ",
           weight.type());
  if (drawn < 1 || drawn > 1 << 20)
    reject(kName, "num_neg_samples must be from 1 to 2^20, not ", drawn);
  const Tensor label = ops::unsqueeze(class_labels(kName, c.operand(1), x.dim(0)), {1});
  const DType dtype = x.dtype();
  const auto classes = static_cast<double>(a.num_total_classes);
  const Shape shape = {x.dim(0), Dim(drawn)};
  Tensor noise;
  std::function<Tensor(const Tensor&)> probability;
  if (a.sampler == "custom_dist") {
    if (!c.has(5)) reject(kName, "sampler custom_dist needs custom_dist");
    const Tensor dist = ops::cast(flat(c.operand(5)), dtype);
    if (dist.dim(0).equals(a.num_total_classes) == false)
      reject(kName, "custom_dist ", c.operand(5).type(), " does not match ", a.num_total_classes,
             " classes");
    noise = ops::multinomial(ops::expand(ops::unsqueeze(dist, {0}), {x.dim(0), dist.dim(0)}), drawn,
                             true);
    probability = [=](const Tensor& t) {
      return ops::reshape(ops::index_select(dist, flat(t), 0), t.shape());
    };
  } else if (a.sampler == "log_uniform") {
    const double range = std::log(classes + 1);
    noise = ops::cast(ops::floor(ops::exp(ops::uniform(shape, DType::kF64, 0, 1) * range)) - 1.0,
                      DType::kI64);
    noise = ops::minimum(noise, integer(a.num_total_classes - 1));
    probability = [=](const Tensor& t) {
      const Tensor k = ops::cast(t, dtype);
      return ops::log((k + 2.0) / (k + 1.0)) / range;
    };
  } else {
    noise = ops::minimum(
        ops::cast(ops::floor(ops::uniform(shape, DType::kF64, 0, 1) * classes), DType::kI64),
        integer(a.num_total_classes - 1));
    probability = [=](const Tensor& t) {
      return ops::expand(full_of({}, 1 / classes, dtype), t.shape());
    };
  }
  const Tensor sampled = ops::concat({label, ops::cast(noise, DType::kI64)}, 1);
  const Dim count = Dim(drawn + 1);
  const Tensor row = flat(sampled);
  const Tensor own = ops::reshape(ops::index_select(weight, row, 0), {x.dim(0), count, x.dim(1)});
  Tensor logit = ops::squeeze(ops::matmul(own, ops::unsqueeze(x, {2})), Axes{2});
  if (c.has(3))
    logit = logit + ops::reshape(ops::index_select(flat(c.operand(3)), row, 0), {x.dim(0), count});
  const Tensor model = ops::sigmoid(logit),
               expected = probability(sampled) * static_cast<double>(drawn);
  const Tensor is_label = ops::equal(ops::unsqueeze(range_of(count, DType::kI64), {0}), integer(0));
  Tensor loss = ops::sum(-ops::log(ops::where(is_label, model, expected) / (model + expected)),
                         Axes{1}, std::nullopt, true);
  if (c.has(4)) loss = loss * ops::reshape(c.operand(4), {x.dim(0), Dim(1)});
  return {loss};
}

Tensors decompose_triplet_margin_with_distance_loss(CallContext& c) {
  const auto a = c.attrs_as<TripletMarginWithDistanceLossAttrs>();
  constexpr const char* kName = "triplet_margin_with_distance_loss";
  if (!a.distance_function.is_none())
    reject(kName, "distance_function must be none: the distance is Euclidean");
  if (a.margin < 0) reject(kName, "margin must not be negative, not ", a.margin);
  const Tensor &x = c.operand(0), &positive = c.operand(1), &negative = c.operand(2);
  require_same_shape(kName, "input", x, "positive", positive);
  require_same_shape(kName, "input", x, "negative", negative);
  Tensor far = ops::pairwise_distance(x, negative);
  if (a.swap) far = ops::minimum(far, ops::pairwise_distance(positive, negative));
  const Tensor loss =
      ops::maximum(ops::pairwise_distance(x, positive) - far + a.margin, number(0.0));
  return {reduce_loss(loss, a.reduction)};
}

Tensors decompose_adaptive_log_softmax_with_loss(CallContext& c) {
  const auto a = c.attrs_as<AdaptiveLogSoftmaxWithLossAttrs>();
  constexpr const char* kName = "adaptive_log_softmax_with_loss";
  const bool single = c.operand(1).ndim() == 0;
  const Tensor x = single ? ops::unsqueeze(c.operand(0), {0}) : c.operand(0);
  check_matrix(kName, "input", x);
  const Tensor label = single ? ops::reshape(ops::cast(c.operand(1), DType::kI64), Shape{1})
                              : class_labels(kName, c.operand(1), x.dim(0));
  const Tensors tails = c.list(3);
  const auto clusters = static_cast<int64_t>(a.cutoffs.size()) - 1;
  if (clusters < 0) reject(kName, "cutoffs must not be empty");
  for (size_t i = 0; i < a.cutoffs.size(); ++i)
    if (a.cutoffs[i] <= (i == 0 ? 0 : a.cutoffs[i - 1]))
      reject(kName, "cutoffs must be positive and grow");
  if (static_cast<int64_t>(tails.size()) != 2 * clusters)
    reject(kName, "tail_weights must be ", clusters, " pairs of matrices, not ", tails.size(),
           " tensors");
  const int64_t first = a.cutoffs[0];
  if (c.operand(2).ndim() != 2 || c.operand(2).dim(1).equals(first + clusters) == false)
    reject(kName, "head_weight must be [", x.dim(1), ", ", first + clusters, "], not ",
           c.operand(2).type());
  const Tensor head =
      ops::log_softmax(ops::linear(x, c.operand(2), c.has(4) ? c.operand(4) : Tensor()), 1);
  // A class of a cluster is that of the cluster in the head, times its own in the cluster. A label
  // out of range is rejected as an index.
  Tensor in_head = label, tail;
  for (int64_t i = 0; i < clusters; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t low = a.cutoffs[at], high = a.cutoffs[at + 1];
    const Tensor own = ops::logical_and(ops::greater_equal(label, integer(low)),
                                        ops::less_than(label, integer(high)));
    const Tensor log_probs =
        ops::log_softmax(ops::matmul(ops::matmul(x, tails[2 * at]), tails[2 * at + 1]), 1);
    if (log_probs.dim(1).equals(high - low) == false)
      reject(kName, "the matrices of cluster ", i, " give ", log_probs.dim(1), " classes, not ",
             high - low);
    const Tensor place = ops::where(own, label - integer(low), integer(0));
    const Tensor each =
        ops::squeeze(ops::gather_along(log_probs, ops::unsqueeze(place, {1}), 1), Axes{1});
    const Tensor part = ops::where(own, each, number(0.0));
    tail = tail ? tail + part : part;
    in_head = ops::where(own, integer(first + i), in_head);
  }
  // Labels beyond the last cluster become an index beyond the head's classes.
  in_head =
      ops::where(ops::greater_equal(label, integer(a.cutoffs.back())), integer(INT32_MAX), in_head);
  in_head = ops::where(ops::less_than(label, integer(0)), integer(INT32_MAX), in_head);
  Tensor out = ops::squeeze(ops::gather_along(head, ops::unsqueeze(in_head, {1}), 1), Axes{1});
  if (tail) out = out + tail;
  const Tensor loss = ops::mean(-out);
  return {single ? ops::squeeze(out, Axes{0}) : out, loss};
}

Tensors decompose_soft_relu(CallContext& c) {
  const double limit = c.attrs_as<SoftReluAttrs>().threshold;
  if (!(limit >= 0)) reject("soft_relu", "threshold must not be negative, not ", limit);
  return {ops::log1p(ops::exp(ops::clip(c.operand(0), -limit, limit)))};
}

Tensors decompose_identity_loss(CallContext& c) {
  const AttrValue how = c.attrs_as<IdentityLossAttrs>().reduction;
  const Tensor& x = c.operand(0);
  const std::string name =
      how.is_string()
          ? how.as_string()
          : std::vector<std::string>{
                "sum", "mean", "none",
                ""}[static_cast<size_t>(how.as_int() >= 0 && how.as_int() < 3 ? how.as_int() : 3)];
  if (name != "sum" && name != "mean" && name != "none")
    reject("identity_loss", "reduction must be sum (0), mean (1) or none (2), not ", how);
  return {name == "none" ? ops::assign(x) : reduce_loss(x, name)};
}

Tensors decompose_class_center_sample(CallContext& c) {
  const auto a = c.attrs_as<ClassCenterSampleAttrs>();
  constexpr const char* kName = "class_center_sample";
  if (!a.group.is_none() && !(a.group.is_bool() && !a.group.as_bool()))
    reject(kName, "classes divided over processes (group) are not supported");
  if (a.num_samples < 1 || a.num_samples > a.num_classes)
    reject(kName, "num_samples must be from 1 to num_classes ", a.num_classes, ", not ",
           a.num_samples);
  const Tensor label = class_labels(kName, c.operand(0), c.operand(0).dim(0));
  const Tensor hits = ops::index_add(full_of({Dim(a.num_classes)}, 0, DType::kF32), label, 0,
                                     full_of({label.dim(0)}, 1, DType::kF32));
  const Tensor occurs = ops::greater_than(hits, number(0.0));
  // Classes that occur come first, the others in random order.
  const Tensor order =
      ops::where(occurs, number(-1.0), ops::uniform({Dim(a.num_classes)}, DType::kF32, 0.0, 1.0));
  const Tensor rank = ops::argsort(ops::argsort(order, 0, false, true), 0, false, true);
  const Tensor wanted =
      ops::maximum(ops::sum(ops::cast(occurs, DType::kI64)), integer(a.num_samples));
  const Tensor taken = ops::less_than(rank, wanted);
  const Tensor place = ops::cumsum(ops::cast(taken, DType::kI64), int64_t{0}) - integer(1);
  const Tensor sampled = ops::reshape(ops::nonzero_rows(taken), Shape{-1});
  return {ops::cast(ops::index_select(place, label, 0), c.operand(0).dtype()),
          ops::cast(sampled, c.operand(0).dtype())};
}

}  // namespace paddle::rules
