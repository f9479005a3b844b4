// Transforms of random variables.

#include <algorithm>

#include "ops/distribution/kinds.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::distribution {
namespace {

using rules::reject;
using rules::slice_axis;

constexpr size_t kMaxParts = 1024;

Tensor log_of_magnitude(const Tensor& x) { return ops::log(ops::abs(x)); }

/// n + 1 - (1, …, n) for the last axis of length n: what is left of the stick at each break.
Tensor breaks_left(const Tensor& x) {
  const Dim& n = x.shape().back();
  return dim_value(n, x.dtype()) - range_of(n, x.dtype());
}

/// One value before (or after) the last axis.
Tensor with_one(const Tensor& x, bool in_front) {
  Shape shape = x.shape();
  shape.back() = 1;
  const Tensor one = full_of(shape, 1, x.dtype());
  return in_front ? ops::concat({one, x}, -1) : ops::concat({x, one}, -1);
}

Tensor break_stick(const Transform&, const Tensor& x) {
  const Tensor z = ops::sigmoid(x - ops::log(breaks_left(x)));
  return with_one(z, false) * with_one(ops::cumprod(1.0 - z, int64_t{-1}), true);
}

Tensor mend_stick(const Transform&, const Tensor& y) {
  const Tensor parts = slice_axis(y, y.ndim() - 1, 0, y.shape().back() - 1);
  const Tensor left = 1.0 - ops::cumsum(parts, int64_t{-1});
  return ops::log(parts) - ops::log(left) + ops::log(breaks_left(parts));
}

Tensor stick_log_det(const Transform& t, const Tensor& x) {
  const Tensor y = break_stick(t, x);
  const Tensor parts = slice_axis(y, y.ndim() - 1, 0, x.shape().back());
  const Tensor shifted = x - ops::log(breaks_left(x));
  return sum_last(ops::log_sigmoid(shifted) - shifted + ops::log(parts), 1);
}

std::vector<Transform::Kind> make_transform_kinds() {
  std::vector<Transform::Kind> out;
  out.push_back({.name = "abs_transform",
                 .parameters = {},
                 .forward = [](const Transform&, const Tensor& x) { return ops::abs(x); },
                 .inverse = [](const Transform&, const Tensor& y) { return y + 0.0; }});
  out.push_back(
      {.name = "affine_transform",
       .parameters = {"loc", "scale"},
       .forward = [](const Transform& t,
                     const Tensor& x) { return t.parameter(0) + t.parameter(1) * x; },
       .inverse = [](const Transform& t,
                     const Tensor& y) { return (y - t.parameter(0)) / t.parameter(1); },
       .log_det = [](const Transform& t,
                     const Tensor& x) { return log_of_magnitude(t.parameter(1)) + 0.0 * x; }});
  out.push_back({.name = "exp_transform",
                 .parameters = {},
                 .forward = [](const Transform&, const Tensor& x) { return ops::exp(x); },
                 .inverse = [](const Transform&, const Tensor& y) { return ops::log(y); },
                 .log_det = [](const Transform&, const Tensor& x) { return x + 0.0; }});
  out.push_back(
      {.name = "power_transform",
       .parameters = {"power"},
       .forward = [](const Transform& t, const Tensor& x) { return ops::pow(x, t.parameter(0)); },
       .inverse = [](const Transform& t,
                     const Tensor& y) { return ops::pow(y, ops::reciprocal(t.parameter(0))); },
       .log_det =
           [](const Transform& t, const Tensor& x) {
             const Tensor& p = t.parameter(0);
             return log_of_magnitude(p * ops::pow(x, p - 1.0));
           }});
  out.push_back(
      {.name = "sigmoid_transform",
       .parameters = {},
       .forward = [](const Transform&, const Tensor& x) { return ops::sigmoid(x); },
       .inverse = [](const Transform&, const Tensor& y) { return ops::log(y) - ops::log1p(-y); },
       .log_det = [](const Transform&,
                     const Tensor& x) { return ops::log_sigmoid(x) + ops::log_sigmoid(-x); }});
  out.push_back({.name = "softmax_transform",
                 .parameters = {},
                 .domain_rank = 1,
                 .codomain_rank = 1,
                 .forward = [](const Transform&, const Tensor& x) { return ops::softmax(x); },
                 .inverse = [](const Transform&, const Tensor& y) { return ops::log(y); }});
  out.push_back({.name = "stick_breaking_transform",
                 .parameters = {},
                 .domain_rank = 1,
                 .codomain_rank = 1,
                 .forward = break_stick,
                 .inverse = mend_stick,
                 .log_det = stick_log_det});
  out.push_back({.name = "tanh_transform",
                 .parameters = {},
                 .forward = [](const Transform&, const Tensor& x) { return ops::tanh(x); },
                 .inverse = [](const Transform&, const Tensor& y) { return ops::atanh(y); },
                 .log_det =
                     [](const Transform&, const Tensor& x) {
                       return 2.0 * (std::numbers::ln2 - x + ops::log_sigmoid(2.0 * x));
                     }});
  return out;
}

const Transform::Kind kChain{.name = "chain_transform", .parameters = {}};
const Transform::Kind kIndependentTransform{.name = "independent_transform", .parameters = {}};
const Transform::Kind kReshape{.name = "reshape_transform", .parameters = {}};
const Transform::Kind kStack{.name = "stack_transform", .parameters = {}};

/// The last axes of a shape replaced.
Shape with_last(const Shape& shape, const std::vector<int64_t>& from,
                const std::vector<int64_t>& to) {
  const size_t kept = shape.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (shape[kept + i].equals(Dim(from[i])) == false)
      reject("reshape_transform", "expected ", from[i], " along axis ", kept + i, ", found ",
             shape[kept + i]);
  Shape out(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(kept));
  for (const int64_t size : to) out.emplace_back(size);
  return out;
}

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t out = 1;
  for (const int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(out, size, &out))
      reject("reshape_transform", "sizes must be positive and their product fit in 64 bits");
  }
  return out;
}

}  // namespace

const std::vector<Transform::Kind>& Transform::kinds() {
  static const std::vector<Kind> kinds = make_transform_kinds();
  return kinds;
}

const Transform::Kind* Transform::find_kind(std::string_view name) {
  for (const Kind& kind : kinds())
    if (kind.name == name) return &kind;
  return nullptr;
}

TransformPtr Transform::make(const Kind& kind, Tensors parameters) {
  if (parameters.size() != kind.parameters.size())
    reject(kind.name, "expected ", kind.parameters.size(), " parameters, found ",
           parameters.size());
  auto out = std::make_shared<Transform>();
  out->kind_ = &kind;
  out->domain_rank_ = kind.domain_rank;
  out->codomain_rank_ = kind.codomain_rank;
  out->parameters_ = std::move(parameters);
  return out;
}

TransformPtr Transform::chain(std::vector<TransformPtr> parts) {
  if (parts.empty()) reject(kChain.name, "expected at least one transform");
  if (parts.size() > kMaxParts) reject(kChain.name, "more than ", kMaxParts, " transforms");
  auto out = std::make_shared<Transform>();
  out->kind_ = &kChain;
  int64_t domain = parts.back()->codomain_rank_, codomain = parts.front()->domain_rank_;
  for (size_t i = parts.size(); i-- > 0;) {
    domain += parts[i]->domain_rank_ - parts[i]->codomain_rank_;
    domain = std::max(domain, parts[i]->domain_rank_);
  }
  for (const TransformPtr& part : parts) {
    codomain += part->codomain_rank_ - part->domain_rank_;
    codomain = std::max(codomain, part->codomain_rank_);
  }
  out->domain_rank_ = domain;
  out->codomain_rank_ = codomain;
  out->parts_ = std::move(parts);
  return out;
}

TransformPtr Transform::independent(TransformPtr base, int64_t rank) {
  if (rank < 1 || rank > 64)
    reject(kIndependentTransform.name, "the number of axes must be positive, not ", rank);
  auto out = std::make_shared<Transform>();
  out->kind_ = &kIndependentTransform;
  out->domain_rank_ = base->domain_rank_ + rank;
  out->codomain_rank_ = base->codomain_rank_ + rank;
  out->axis_ = rank;
  out->parts_ = {std::move(base)};
  return out;
}

TransformPtr Transform::reshape(std::vector<int64_t> in, std::vector<int64_t> out_shape) {
  if (product(in) != product(out_shape))
    reject(kReshape.name, "the shapes have ", product(in), " and ", product(out_shape),
           " elements");
  auto out = std::make_shared<Transform>();
  out->kind_ = &kReshape;
  out->domain_rank_ = static_cast<int64_t>(in.size());
  out->codomain_rank_ = static_cast<int64_t>(out_shape.size());
  out->in_ = std::move(in);
  out->out_ = std::move(out_shape);
  return out;
}

TransformPtr Transform::stack(std::vector<TransformPtr> parts, int64_t axis) {
  if (parts.empty()) reject(kStack.name, "expected at least one transform");
  if (parts.size() > kMaxParts) reject(kStack.name, "more than ", kMaxParts, " transforms");
  auto out = std::make_shared<Transform>();
  out->kind_ = &kStack;
  for (const TransformPtr& part : parts) {
    if (part->domain_rank_ != part->codomain_rank_)
      reject(kStack.name, part->name(), " changes the number of axes of an outcome");
    out->domain_rank_ = std::max(out->domain_rank_, part->domain_rank_);
  }
  if (axis < 0 && axis + out->domain_rank_ < 0 && out->domain_rank_ > 0) ++out->domain_rank_;
  out->codomain_rank_ = out->domain_rank_;
  out->axis_ = axis;
  out->parts_ = std::move(parts);
  return out;
}

namespace {

using Member = Tensor (Transform::*)(const Tensor&) const;

/// Each slice along the axis of a stack through its own transform.
Tensor each(const Transform& stack, const Tensor& x, Member map) {
  const int64_t axis = rules::axis_of(stack.name(), stack.axis(), x.ndim());
  const auto count = static_cast<int64_t>(stack.parts().size());
  if (x.dim(axis).equals(Dim(count)) == false)
    reject(stack.name(), "expected ", count, " slices along axis ", axis, ", found ", x.type());
  const Tensors slices = ops::unstack(x, axis, count);
  Tensors out;
  for (size_t i = 0; i < slices.size(); ++i) out.push_back((*stack.parts()[i].*map)(slices[i]));
  return ops::stack(out, axis);
}

void need_rank(const Transform& t, const Tensor& x, int64_t rank) {
  if (x.ndim() < rank)
    reject(t.name(), "expected at least ", rank, " dimensions, found ", x.type());
}

}  // namespace

Tensor Transform::forward(const Tensor& x) const {
  need_rank(*this, x, domain_rank_);
  if (kind_ == &kStack) return each(*this, x, &Transform::forward);
  if (kind_ == &kReshape) return ops::reshape(x, with_last(x.shape(), in_, out_));
  if (parts_.empty()) return kind_->forward(*this, x);
  Tensor out = x;
  for (const TransformPtr& part : parts_) out = part->forward(out);
  return out;
}

Tensor Transform::inverse(const Tensor& y) const {
  need_rank(*this, y, codomain_rank_);
  if (kind_ == &kStack) return each(*this, y, &Transform::inverse);
  if (kind_ == &kReshape) return ops::reshape(y, with_last(y.shape(), out_, in_));
  if (parts_.empty()) return kind_->inverse(*this, y);
  Tensor out = y;
  for (size_t i = parts_.size(); i-- > 0;) out = parts_[i]->inverse(out);
  return out;
}

Tensor Transform::forward_log_det_jacobian(const Tensor& x) const {
  need_rank(*this, x, domain_rank_);
  if (kind_ == &kStack) return each(*this, x, &Transform::forward_log_det_jacobian);
  if (kind_ == &kReshape) {
    const Shape& shape = x.shape();
    return full_of({shape.begin(), shape.end() - domain_rank_}, 0, x.dtype());
  }
  if (kind_ == &kIndependentTransform)
    return sum_last(parts_[0]->forward_log_det_jacobian(x), axis_);
  if (kind_ == &kChain) {
    Tensor total, at = x;
    int64_t rank = domain_rank_;
    for (const TransformPtr& part : parts_) {
      const Tensor change = sum_last(part->forward_log_det_jacobian(at), rank - part->domain_rank_);
      total = total.defined() ? total + change : change;
      at = part->forward(at);
      rank += part->codomain_rank_ - part->domain_rank_;
    }
    return total;
  }
  if (!kind_->log_det) reject(name(), "is not injective and has no log-determinant");
  return kind_->log_det(*this, x);
}

Tensor Transform::inverse_log_det_jacobian(const Tensor& y) const {
  return -forward_log_det_jacobian(inverse(y));
}

Shape Transform::forward_shape(const Shape& shape) const {
  if (static_cast<int64_t>(shape.size()) < domain_rank_)
    reject(name(), "expected at least ", domain_rank_, " dimensions, found ", shape.size());
  if (kind_ == &kReshape) return with_last(shape, in_, out_);
  if (kind_ == &kStack) return shape;
  Shape out = shape;
  for (const TransformPtr& part : parts_) out = part->forward_shape(out);
  if (kind_->forward == break_stick) out.back() = out.back() + 1;
  if (!parameters_.empty()) {
    Tensors probes = {full_of(shape, 0, DType::kF32)};
    for (const Tensor& p : parameters_) probes.push_back(full_of(p.shape(), 0, DType::kF32));
    out = ops::broadcast_tensors(probes)[0].shape();
  }
  return out;
}

}  // namespace paddle::distribution
