#include "ops/distribution/distribution.h"

#include <algorithm>

#include "base/text.h"
#include "ops/distribution/kinds.h"
#include "ops/generated/creation.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/random.h"
#include "ops/generated/shape.h"

namespace paddle::distribution {
namespace {

constexpr size_t kMaxTransforms = 256;

const Kind kIndependent{.name = "independent", .parameters = {}};
const Kind kTransformed{.name = "transformed_distribution", .parameters = {}};

/// The type that parameters are computed in: float64 if one is, else that of the first tensor.
DType common_dtype(const Tensors& parameters) {
  std::optional<DType> found;
  for (const Tensor& p : parameters) {
    if (p.type().weak || !is_float(p.dtype())) continue;
    if (p.dtype() == DType::kF64 || !found) found = p.dtype();
  }
  return found.value_or(DType::kF32);
}

Shape leading(const Shape& shape, int64_t trailing) {
  return {shape.begin(), shape.end() - trailing};
}

/// Broadcasts tensors in all but their last `trailing` axes.
void broadcast_leading(Tensors& tensors, const std::vector<int64_t>& trailing) {
  Tensors probes;
  for (size_t i = 0; i < tensors.size(); ++i)
    probes.push_back(full_of(leading(tensors[i].shape(), trailing[i]), 0, DType::kF32));
  const Shape batch = ops::broadcast_tensors(probes)[0].shape();
  for (size_t i = 0; i < tensors.size(); ++i) {
    Shape full = batch;
    const Shape& own = tensors[i].shape();
    full.insert(full.end(), own.end() - trailing[i], own.end());
    tensors[i] = ops::expand(tensors[i], full);
  }
}

/// How many trailing axes of a parameter belong to one outcome.
std::vector<int64_t> trailing_axes(const Kind& kind) {
  if (kind.name == "categorical" || kind.name == "dirichlet") return {1};
  if (kind.name == "multinomial") return {0, 1};
  if (kind.name == "multivariate_normal") return {1, 2};
  return std::vector<int64_t>(kind.parameters.size(), 0);
}

}  // namespace

std::vector<const Kind*> kinds() {
  std::vector<const Kind*> out;
  for (const auto* table : {&continuous_kinds(), &discrete_kinds(), &vector_kinds()})
    for (const Kind& kind : *table) out.push_back(&kind);
  std::sort(out.begin(), out.end(), [](const Kind* a, const Kind* b) { return a->name < b->name; });
  return out;
}

const Kind* find_kind(std::string_view name) {
  for (const auto* table : {&continuous_kinds(), &discrete_kinds(), &vector_kinds()})
    for (const Kind& kind : *table)
      if (kind.name == name) return &kind;
  return nullptr;
}

std::vector<std::string> kind_names() {
  std::vector<std::string> out;
  for (const Kind* kind : kinds()) out.emplace_back(kind->name);
  return out;
}

DistributionPtr Distribution::make(const Kind& kind, Tensors parameters,
                                   std::optional<int64_t> trials) {
  auto out = std::make_shared<Distribution>();
  out->kind_ = &kind;
  out->trials_ = trials;
  if (parameters.size() != kind.parameters.size())
    out->reject("expected ", kind.parameters.size(), " parameters, found ", parameters.size());
  if (trials && *trials < 0) out->reject("total_count must not be negative, not ", *trials);
  const DType dtype = common_dtype(parameters);
  const std::vector<int64_t> trailing = trailing_axes(kind);
  for (size_t i = 0; i < parameters.size(); ++i) {
    Tensor& p = parameters[i];
    if (!is_float(p.dtype()) && !is_integer(p.dtype()) && p.dtype() != DType::kBool)
      out->reject(kind.parameters[i], " must be numbers, not ", p.type());
    if (p.ndim() < trailing[i])
      out->reject(kind.parameters[i], " must have at least ", trailing[i], " dimensions, not ",
                  p.type());
    p = ops::cast(p, dtype);
  }
  if (kind.name == "multinomial" && parameters[0].ndim() != 0)
    out->reject("total_count must be one number, not ", parameters[0].type());
  if (kind.name == "multivariate_normal") {
    const Dim &n = parameters[0].shape().back(), &rows = parameters[1].dim(-2);
    if (n.equals(rows) == false || rows.equals(parameters[1].dim(-1)) == false)
      out->reject("scale_tril must be [..., n, n] for loc [..., n], not ", parameters[1].type(),
                  " for ", parameters[0].type());
  }
  if (parameters.size() > 1 && kind.name != "multinomial") broadcast_leading(parameters, trailing);
  const Shape& last = parameters.back().shape();
  out->batch_shape_ = leading(last, trailing.back());
  if (kind.event_rank > 0) out->event_shape_ = {last.back()};
  out->parameters_ = std::move(parameters);
  return out;
}

DistributionPtr Distribution::from_arguments(const Kind& kind, Tensors positional,
                                             std::vector<std::pair<std::string, Tensor>> named,
                                             std::optional<int64_t> trials) {
  const auto reject = [&](const auto&... parts) {
    fail(ErrorCode::kUsage, kind.name, ": ", parts...);
  };
  std::vector<std::string> names(kind.parameters.begin(), kind.parameters.end());
  const bool is_vector = kind.name == "multivariate_normal";
  if (is_vector) names[1] = "covariance_matrix";
  const size_t count = names.size();
  if (positional.size() > count)
    reject("takes at most ", count, " arguments, found ", positional.size());
  Tensors out(count);
  std::copy(positional.begin(), positional.end(), out.begin());
  const auto place = [&](size_t i, const std::string& name, Tensor value) {
    if (out[i].defined()) reject("'", name, "' is given twice");
    out[i] = std::move(value);
  };
  bool factor = false;
  for (auto& [name, value] : named) {
    std::string meant = name;
    if (kind.name == "normal" || kind.name == "lognormal")
      meant = name == "mean" ? "loc" : name == "std" ? "scale" : name;
    if (name == "logits" && kind.name == "categorical") {
      place(0, name, ops::softmax(value));
      continue;
    }
    if (name == "logits" && kind.name == "bernoulli") {
      place(0, name, ops::sigmoid(value));
      continue;
    }
    if (is_vector && name == "scale_tril") {
      place(1, name, std::move(value));
      factor = true;
      continue;
    }
    if (is_vector && name == "precision_matrix") {
      place(1, name, ops::inv(value));
      continue;
    }
    const auto at = std::find(names.begin(), names.end(), meant);
    if (at == names.end()) reject("has no parameter '", name, "'", did_you_mean(name, names));
    place(static_cast<size_t>(at - names.begin()), name, std::move(value));
  }
  for (size_t i = 0; i < count; ++i)
    if (!out[i].defined()) reject("needs the parameter '", names[i], "'");
  if (is_vector && !factor) {
    if (out[1].ndim() < 2) reject("covariance_matrix must be [..., n, n], not ", out[1].type());
    out[1] = ops::cholesky(out[1]);
  }
  return make(kind, std::move(out), trials);
}

DistributionPtr Distribution::independent(DistributionPtr base, int64_t rank) {
  auto out = std::make_shared<Distribution>();
  out->kind_ = &kIndependent;
  const auto axes = static_cast<int64_t>(base->batch_shape_.size());
  if (rank < 0 || rank > axes)
    out->reject("the number of axes must be from 0 to ", axes, ", not ", rank);
  out->batch_shape_ = leading(base->batch_shape_, rank);
  out->event_shape_.assign(base->batch_shape_.end() - rank, base->batch_shape_.end());
  out->event_shape_.insert(out->event_shape_.end(), base->event_shape_.begin(),
                           base->event_shape_.end());
  out->reinterpreted_ = rank;
  out->base_ = std::move(base);
  return out;
}

DistributionPtr Distribution::transformed(DistributionPtr base,
                                          std::vector<TransformPtr> transforms) {
  auto out = std::make_shared<Distribution>();
  out->kind_ = &kTransformed;
  if (transforms.empty()) out->reject("expected at least one transform");
  if (transforms.size() > kMaxTransforms) out->reject("more than ", kMaxTransforms, " transforms");
  const TransformPtr chain = Transform::chain(transforms);
  const auto events = [&] { return static_cast<int64_t>(base->event_shape_.size()); };
  const auto batch = static_cast<int64_t>(base->batch_shape_.size());
  if (chain->domain_rank() > batch + events())
    out->reject("the transforms need outcomes of at least ", chain->domain_rank(), " dimensions");
  if (chain->domain_rank() > events()) base = independent(base, chain->domain_rank() - events());
  Shape whole = base->batch_shape_;
  whole.insert(whole.end(), base->event_shape_.begin(), base->event_shape_.end());
  whole = chain->forward_shape(whole);
  const int64_t rank =
      chain->codomain_rank() + std::max<int64_t>(events() - chain->domain_rank(), 0);
  out->batch_shape_ = leading(whole, rank);
  out->event_shape_.assign(whole.end() - rank, whole.end());
  out->transforms_ = std::move(transforms);
  out->base_ = std::move(base);
  return out;
}

DType Distribution::dtype() const { return base_ ? base_->dtype() : parameters_.back().dtype(); }

const Tensor* Distribution::find_parameter(std::string_view name) const {
  for (size_t i = 0; i < kind_->parameters.size(); ++i)
    if (kind_->parameters[i] == name) return &parameters_[i];
  return nullptr;
}

Tensor Distribution::value_of(const Tensor& value) const {
  return is_float(value.dtype()) && !value.type().weak ? value : ops::cast(value, dtype());
}

Tensor Distribution::log_prob(const Tensor& given) const {
  const Tensor value = value_of(given);
  const auto events = static_cast<int64_t>(event_shape_.size());
  if (value.ndim() < events)
    reject("a value must have at least ", events, " dimensions, not ", value.type());
  if (kind_ == &kIndependent) return sum_last(base_->log_prob(value), reinterpreted_);
  if (kind_ == &kTransformed) return log_prob_of_transformed(value);
  return kind_->log_prob(*this, value);
}

Tensor Distribution::log_prob_of_transformed(const Tensor& value) const {
  Tensor total, y = value;
  auto rank = static_cast<int64_t>(event_shape_.size());
  for (size_t i = transforms_.size(); i-- > 0;) {
    const Transform& t = *transforms_[i];
    const Tensor x = t.inverse(y);
    rank += t.domain_rank() - t.codomain_rank();
    const Tensor change = sum_last(t.forward_log_det_jacobian(x), rank - t.domain_rank());
    total = total.defined() ? total - change : -change;
    y = x;
  }
  const auto events = static_cast<int64_t>(base_->event_shape_.size());
  return total + sum_last(base_->log_prob(y), rank - events);
}

Tensor Distribution::prob(const Tensor& value) const { return ops::exp(log_prob(value)); }

Tensor Distribution::entropy() const {
  if (kind_ == &kIndependent) return sum_last(base_->entropy(), reinterpreted_);
  if (!kind_->entropy) reject("the entropy has no closed form");
  return kind_->entropy(*this);
}

Tensor Distribution::mean() const {
  if (kind_ == &kIndependent) return base_->mean();
  if (!kind_->mean) reject("its mean is not defined");
  return kind_->mean(*this);
}

Tensor Distribution::variance() const {
  if (kind_ == &kIndependent) return base_->variance();
  if (!kind_->variance) reject("its variance is not defined");
  return kind_->variance(*this);
}

Tensor Distribution::stddev() const { return ops::sqrt(variance()); }

Tensor Distribution::cdf(const Tensor& value) const {
  if (!kind_->cdf) reject("cdf has no closed form");
  return kind_->cdf(*this, value_of(value));
}

Tensor Distribution::icdf(const Tensor& value) const {
  if (!kind_->icdf) reject("icdf has no closed form");
  return kind_->icdf(*this, value_of(value));
}

Tensor Distribution::draw(const Shape& shape, bool differentiable) const {
  if (base_) {
    Tensor out = base_->draw(shape, differentiable);
    for (const TransformPtr& t : transforms_) out = t->forward(out);
    return out;
  }
  if (differentiable && !kind_->reparametrized)
    reject("rsample does not exist for discrete outcomes; sample does");
  Shape full = shape;
  full.insert(full.end(), batch_shape_.begin(), batch_shape_.end());
  full.insert(full.end(), event_shape_.begin(), event_shape_.end());
  return kind_->draw(*this, full);
}

Tensor Distribution::sample(const Shape& shape) const { return ops::detach(draw(shape, false)); }
Tensor Distribution::rsample(const Shape& shape) const { return draw(shape, true); }

Tensor Distribution::relaxed_sample(const Shape& shape, double temperature) const {
  if (kind_->name != "bernoulli") reject("only bernoulli has relaxed outcomes");
  if (!(temperature > 0)) reject("temperature must be positive, not ", temperature);
  Shape full = shape;
  full.insert(full.end(), batch_shape_.begin(), batch_shape_.end());
  // Neither end of the range, whose logits are infinite.
  const double edge = dtype() == DType::kF64 ? 1e-16 : 6e-8;
  const Tensor u = ops::uniform(full, dtype(), edge, 1 - edge), &p = parameter(0);
  return (ops::log(u) - ops::log1p(-u) + ops::log(p) - ops::log1p(-p)) / temperature;
}

Tensor Distribution::kl_divergence(const Distribution& other) const {
  if (kind_ == &kIndependent && other.kind_ == &kIndependent) {
    if (reinterpreted_ != other.reinterpreted_)
      reject("kl_divergence needs as many reinterpreted axes on both sides");
    return sum_last(base_->kl_divergence(*other.base_), reinterpreted_);
  }
  const Divergence rule = find_divergence(name(), other.name());
  if (!rule)
    reject("there is no rule for kl_divergence to ", other.name(), "; a block kl_", name(), "_",
           other.name(), "(p, q) in a model file adds one");
  return rule(*this, other);
}

}  // namespace paddle::distribution
