// Rules of distribution.yaml.

#include "base/text.h"
#include "ops/core/compose.h"
#include "ops/distribution/distribution.h"
#include "ops/generated/distribution.h"
#include "ops/generated/distribution_rules.h"

namespace paddle::rules {
namespace {

using distribution::Distribution;
using distribution::DistributionPtr;
using distribution::Transform;

DistributionPtr make(std::string_view op, const std::string& name, Tensors parameters,
                     std::optional<int64_t> trials) {
  const distribution::Kind* kind = distribution::find_kind(name);
  if (!kind)
    reject(op, "there is no distribution '", name, "'",
           did_you_mean(name, distribution::kind_names()));
  if (trials && !kind->counts) reject(op, "total_count is not a parameter of ", name);
  if (trials) parameters.insert(parameters.begin(), Tensor::number(*trials));
  return Distribution::from_arguments(*kind, std::move(parameters), {}, trials);
}

/// The distribution of a call; `declared` is the position of its parameters.
template <class Attributes>
DistributionPtr given(const CallContext& c, size_t declared) {
  const auto a = c.attrs_as<Attributes>();
  return make(c.op().name(), a.distribution, c.list(declared), a.total_count);
}

template <class Attributes>
Tensor mapped(const CallContext& c, Tensor (Transform::*map)(const Tensor&) const) {
  const auto a = c.attrs_as<Attributes>();
  const Transform::Kind* kind = Transform::find_kind(a.transform);
  if (!kind) {
    std::vector<std::string> names;
    for (const Transform::Kind& known : Transform::kinds()) names.emplace_back(known.name);
    reject(c.op().name(), "there is no transform '", a.transform, "'",
           did_you_mean(a.transform, names));
  }
  return (*Transform::make(*kind, c.list(1)).*map)(c.operand(0));
}

}  // namespace

Tensors decompose_distribution_log_prob(CallContext& c) {
  return {given<DistributionLogProbAttrs>(c, 1)->log_prob(c.operand(0))};
}

Tensors decompose_distribution_cdf(CallContext& c) {
  return {given<DistributionCdfAttrs>(c, 1)->cdf(c.operand(0))};
}

Tensors decompose_distribution_icdf(CallContext& c) {
  return {given<DistributionIcdfAttrs>(c, 1)->icdf(c.operand(0))};
}

Tensors decompose_distribution_entropy(CallContext& c) {
  return {given<DistributionEntropyAttrs>(c, 0)->entropy()};
}

Tensors decompose_distribution_mean(CallContext& c) {
  return {given<DistributionMeanAttrs>(c, 0)->mean()};
}

Tensors decompose_distribution_variance(CallContext& c) {
  return {given<DistributionVarianceAttrs>(c, 0)->variance()};
}

Tensors decompose_distribution_sample(CallContext& c) {
  const auto a = c.attrs_as<DistributionSampleAttrs>();
  return {given<DistributionSampleAttrs>(c, 0)->sample(a.shape)};
}

Tensors decompose_distribution_rsample(CallContext& c) {
  const auto a = c.attrs_as<DistributionRsampleAttrs>();
  return {given<DistributionRsampleAttrs>(c, 0)->rsample(a.shape)};
}

Tensors decompose_distribution_kl_divergence(CallContext& c) {
  const auto a = c.attrs_as<DistributionKlDivergenceAttrs>();
  const DistributionPtr p = make(c.op().name(), a.distribution, c.list(0), a.total_count);
  const DistributionPtr q =
      make(c.op().name(), a.other.value_or(a.distribution), c.list(1), a.total_count);
  return {p->kl_divergence(*q)};
}

Tensors decompose_distribution_transform_forward(CallContext& c) {
  return {mapped<DistributionTransformForwardAttrs>(c, &Transform::forward)};
}

Tensors decompose_distribution_transform_inverse(CallContext& c) {
  return {mapped<DistributionTransformInverseAttrs>(c, &Transform::inverse)};
}

Tensors decompose_distribution_transform_forward_log_det_jacobian(CallContext& c) {
  return {mapped<DistributionTransformForwardLogDetJacobianAttrs>(
      c, &Transform::forward_log_det_jacobian)};
}

Tensors decompose_distribution_transform_inverse_log_det_jacobian(CallContext& c) {
  return {mapped<DistributionTransformInverseLogDetJacobianAttrs>(
      c, &Transform::inverse_log_det_jacobian)};
}

}  // namespace paddle::rules
