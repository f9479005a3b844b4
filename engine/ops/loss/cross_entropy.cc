// Rules of cross_entropy.yaml.

#include "ops/core/compose.h"
#include "ops/generated/loss.h"
#include "ops/generated/loss_rules.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

Shape without_axis(const Shape& shape, int64_t axis) {
  Shape out = shape;
  out.erase(out.begin() + (axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis));
  return out;
}

DType wide(DType d) { return d == DType::kF16 || d == DType::kBF16 ? DType::kF32 : d; }

}  // namespace

void infer_softmax_cross_entropy(InferContext& c) {
  const auto a = c.attrs_as<SoftmaxCrossEntropyAttrs>();
  c.check(c.rank(0) > 0, "logits must have a class axis");
  const int64_t axis = c.axis(a.axis, c.rank(0));
  const Shape rows = without_axis(c.shape(0), axis);
  c.check(rows.size() == c.shape(1).size(), "label is ", c.type(1), ", logits are ", c.type(0));
  for (size_t i = 0; i < rows.size(); ++i)
    c.require_equal(rows[i], c.shape(1)[i],
                    str("label is ", c.type(1), ", logits are ", c.type(0)));
  c.result(wide(c.dtype(0)), rows);
  c.result(wide(c.dtype(0)), rows);
}

Tensors vjp_softmax_cross_entropy(VjpContext& c) {
  const auto a = c.attrs_as<SoftmaxCrossEntropyAttrs>();
  Tensors out = c.gradients();
  if (c.needs(0))
    out[0] = ops::softmax_cross_entropy_grad(c.cotangent_or_zeros(0), c.operand(0), c.operand(1),
                                             c.result(1), a.axis, a.ignore_index);
  return out;
}

void infer_softmax_cross_entropy_grad(InferContext& c) {
  const auto a = c.attrs_as<SoftmaxCrossEntropyGradAttrs>();
  c.check(c.rank(1) > 0, "logits must have a class axis");
  const Shape rows = without_axis(c.shape(1), c.axis(a.axis, c.rank(1)));
  for (const size_t i : {size_t{0}, size_t{2}, size_t{3}}) {
    const auto what = str("operand ", i, " is ", c.type(i), ", logits are ", c.type(1));
    c.check(c.shape(i).size() == rows.size(), what);
    for (size_t k = 0; k < rows.size(); ++k) c.require_equal(rows[k], c.shape(i)[k], what);
  }
  c.result(c.dtype(1), c.shape(1));
}

Tensors decompose_softmax_cross_entropy_grad(CallContext& c) {
  const auto a = c.attrs_as<SoftmaxCrossEntropyGradAttrs>();
  const Tensor &g = c.operand(0), &logits = c.operand(1), &label = c.operand(2);
  const int64_t rank = logits.ndim(), axis = a.axis < 0 ? a.axis + rank : a.axis;
  const Dim& classes = logits.dim(axis);
  // Where a label is, as comparison with a range laid along the class axis.
  Shape along(static_cast<size_t>(rank), Dim(1));
  along[static_cast<size_t>(axis)] = classes;
  const Tensor index = ops::reshape(ops::cumsum(full_of({classes}, 1, DType::kI64), 0), along) -
                       Tensor::number(int64_t{1});
  const Tensor spread_label = ops::unsqueeze(ops::cast(label, DType::kI64), {axis});
  const Tensor hit = mask_of(ops::equal(index, spread_label), logits);
  // Selected, not multiplied by 0: an ignored row may hold NaN or infinity.
  const Tensor kept = ops::not_equal(spread_label, Tensor::number(a.ignore_index));
  return {ops::where(kept, (ops::softmax(logits, axis) - hit) * ops::unsqueeze(g, {axis}),
                     Tensor::number(0.0))};
}
namespace {

/// Axis counted from 0, and whether hard labels keep an axis of size 1.
struct LabelForm {
  int64_t axis;
  bool kept_axis;
};

LabelForm label_form(int64_t input_rank, int64_t axis, int64_t label_rank) {
  return {axis < 0 ? axis + input_rank : axis, label_rank == input_rank};
}

}  // namespace

void infer_cross_entropy(InferContext& c) {
  const auto a = c.attrs_as<CrossEntropyAttrs>();
  const Shape &x = c.shape(0), &label = c.shape(1);
  c.check(!x.empty(), "input must have a class axis");
  const int64_t axis = c.axis(a.axis, c.rank(0));
  c.check(a.label_smoothing >= 0 && a.label_smoothing <= 1,
          "label_smoothing must lie in [0, 1], not ", a.label_smoothing);
  Shape rows = without_axis(x, axis);
  if (a.soft_label) {
    c.check(label.size() == x.size(), "soft label is ", c.type(1), ", input is ", c.type(0));
    for (size_t i = 0; i < x.size(); ++i)
      c.require_equal(x[i], label[i], str("soft label is ", c.type(1), ", input is ", c.type(0)));
  } else {
    c.require_integer(1);
    const bool kept = label.size() == x.size();
    c.check(kept || label.size() + 1 == x.size(), "label is ", c.type(1), ", input is ", c.type(0),
            ": expected ", text(rows), " or the same with a 1 in axis ", axis);
    for (size_t i = 0, r = 0; i < label.size(); ++i) {
      const Dim expected = kept && static_cast<int64_t>(i) == axis ? Dim(1) : rows[r++];
      c.require_equal(label[i], expected, str("label is ", c.type(1), ", input is ", c.type(0)));
    }
  }
  if (c.has(2)) {
    c.check(c.rank(2) == 1, "weight must be [classes], not ", c.type(2));
    c.require_equal(c.shape(2)[0], x[static_cast<size_t>(axis)],
                    "weight does not have one entry a class");
  }
  if (a.reduction != "none") {
    c.result(c.dtype(0), Shape());
    return;
  }
  const bool keep = a.soft_label || a.label_smoothing > 0 || label.size() == x.size();
  if (keep) rows.insert(rows.begin() + axis, Dim(1));
  c.result(c.dtype(0), rows);
}
namespace {

Tensor cross_entropy_of(const CallContext& c) {
  const auto a = c.attrs_as<CrossEntropyAttrs>();
  const Tensor &input = c.operand(0), &label = c.operand(1);
  const LabelForm form = label_form(input.ndim(), a.axis, label.ndim());
  const int64_t axis = form.axis;
  const DType dtype = wide(input.dtype());
  const std::vector<int64_t> class_axis = {axis};
  const auto log_probability = [&] {
    return a.use_softmax ? ops::log_softmax(input, axis) : ops::log(input);
  };
  Shape along(input.shape().size(), Dim(1));
  along[static_cast<size_t>(axis)] = input.dim(axis);

  if (a.soft_label || a.label_smoothing > 0) {
    // Soft labels, weighted per class.
    Tensor target, valid, kept;
    if (a.soft_label) {
      target = ops::cast(label, dtype);
    } else {
      const Tensor flat =
          form.kept_axis ? ops::reshape(label, without_axis(label.shape(), axis)) : label;
      const Tensor spread = ops::unsqueeze(ops::cast(flat, DType::kI64), {axis});
      const Tensor index =
          ops::reshape(ops::cumsum(full_of({input.dim(axis)}, 1, DType::kI64), 0), along) -
          Tensor::number(int64_t{1});
      target = ops::cast(ops::equal(index, spread), dtype);
      kept = ops::not_equal(spread, Tensor::number(a.ignore_index));
      valid = ops::cast(kept, dtype);
    }
    if (a.label_smoothing > 0)
      target =
          target * (1 - a.label_smoothing) + a.label_smoothing / dim_value(input.dim(axis), dtype);
    if (valid.defined()) target = target * valid;
    Tensor terms = target * log_probability();
    if (kept.defined()) terms = ops::where(kept, terms, Tensor::number(0.0));
    const Tensor hard = ops::sum(terms, class_axis, std::nullopt, true);
    Tensor loss = -hard;
    Tensor divisor;
    if (c.has(2)) {
      const Tensor w =
          ops::sum(target * ops::reshape(c.operand(2), along), class_axis, std::nullopt, true);
      loss = loss * w;
      divisor = ops::sum(w);
    }
    if (a.reduction == "mean" && (divisor.defined() || valid.defined())) {
      if (!divisor.defined()) divisor = ops::sum(valid);
      const Tensor empty = ops::equal(divisor, Tensor::number(0.0));
      return ops::sum(loss) / ops::where(empty, Tensor::number(1.0), divisor);
    }
    return reduce_loss(loss, a.reduction);
  }

  const Tensor flat =
      form.kept_axis ? ops::reshape(label, without_axis(label.shape(), axis)) : label;
  const Tensor kept = ops::not_equal(flat, Tensor::number(a.ignore_index));
  Tensor loss;
  if (a.use_softmax) {
    loss = ops::softmax_cross_entropy(input, flat, axis, a.ignore_index);
  } else {
    const Tensor spread = ops::unsqueeze(ops::cast(flat, DType::kI64), {axis});
    const Tensor index =
        ops::reshape(ops::cumsum(full_of({input.dim(axis)}, 1, DType::kI64), 0), along) -
        Tensor::number(int64_t{1});
    const Tensor hit = ops::logical_and(ops::equal(index, spread), ops::unsqueeze(kept, {axis}));
    loss = -ops::sum(ops::where(hit, ops::log(input), Tensor::number(0.0)), class_axis);
  }
  const Tensor valid = mask_of(kept, loss);
  Tensor weights = valid;
  if (c.has(2)) {
    const Tensor safe = ops::where(kept, flat, Tensor::number(int64_t{0}));
    const Tensor per_label = ops::embedding(safe, ops::unsqueeze(c.operand(2), {1}));
    weights = valid * ops::reshape(per_label, flat.shape());
    loss = loss * weights;
  }
  if (a.reduction == "mean") {
    const Tensor total = ops::sum(weights);
    const Tensor empty = ops::equal(total, Tensor::number(0.0));
    return ops::sum(loss) / ops::where(empty, Tensor::number(1.0), total);
  }
  if (a.reduction == "sum") return ops::sum(loss);
  return form.kept_axis ? ops::unsqueeze(loss, {axis}) : loss;
}

}  // namespace

Tensors decompose_cross_entropy(CallContext& c) {
  // 16-bit logits are summed in float32.
  const Tensor loss = cross_entropy_of(c);
  const DType dtype = c.result_type(0).dtype;
  return {loss.dtype() == dtype ? loss : ops::cast(loss, dtype)};
}

void infer_pointwise_loss(InferContext& c) {
  const Shape out = c.broadcast(c.shape(0), c.shape(1));
  const AttrValue& reduction = c.attrs()[static_cast<size_t>(c.op().attr_index("reduction"))];
  c.result(c.dtype(0), reduction.as_string() == "none" ? out : Shape());
}

Tensors decompose_binary_cross_entropy_with_logits(CallContext& c) {
  const auto a = c.attrs_as<BinaryCrossEntropyWithLogitsAttrs>();
  const Tensor &x = c.operand(0), &y = c.operand(1);
  require_same_shape("binary_cross_entropy_with_logits", "logit", x, "label", y);
  // softplus(-x) = log(1 + exp(-x)), exact in both tails.
  const Tensor tail = ops::log1p(ops::exp(-ops::abs(x)));
  const Tensor soft = tail + ops::maximum(-x, Tensor::number(0.0));
  Tensor loss = (1.0 - y) * x + soft;
  if (c.has(3)) {
    require_no_expansion("binary_cross_entropy_with_logits", "pos_weight", c.operand(3), loss);
    loss = (1.0 - y) * x + soft * ((c.operand(3) - 1.0) * y + 1.0);
  }
  if (c.has(2)) {
    require_no_expansion("binary_cross_entropy_with_logits", "weight", c.operand(2), loss);
    loss = loss * c.operand(2);
  }
  return {reduce_loss(loss, a.reduction)};
}

Tensors decompose_softmax_with_cross_entropy(CallContext& c) {
  const auto a = c.attrs_as<SoftmaxWithCrossEntropyAttrs>();
  const Tensor& logits = c.operand(0);
  Tensor label = c.operand(1);
  const int64_t axis = a.axis < 0 ? a.axis + logits.ndim() : a.axis;
  if (axis < 0 || axis >= logits.ndim())
    reject("softmax_with_cross_entropy", "axis ", a.axis, " is out of range for ", logits.type());
  if (!a.soft_label && label.ndim() == logits.ndim() - 1) label = ops::unsqueeze(label, {axis});
  Tensor loss = ops::cross_entropy(logits, label, {}, a.ignore_index, "none", a.soft_label, axis);
  if (loss.ndim() < logits.ndim()) loss = ops::unsqueeze(loss, {axis});
  Tensors out = {loss};
  if (a.return_softmax) out.push_back(ops::softmax(logits, axis));
  return out;
}

}  // namespace paddle::rules
