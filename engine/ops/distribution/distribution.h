#pragma once
// Probability distributions and transforms of random variables as values made of tensors: what
// `normal(0, 1).log_prob(x)` means in the model language and what the operations `distribution_…`
// compute. All methods are compositions of operations, so they can be traced and differentiated.
// Names and parameters are those of paddle.distribution.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"

namespace paddle::distribution {

class Distribution;
class Transform;
using DistributionPtr = std::shared_ptr<const Distribution>;
using TransformPtr = std::shared_ptr<const Transform>;

/// A kind of distribution: the names of its parameters and what is known of it. A function that is
/// null does not exist for this kind.
struct Kind {
  using Of = Tensor (*)(const Distribution&);
  using At = Tensor (*)(const Distribution&, const Tensor& value);
  using Draw = Tensor (*)(const Distribution&, const Shape& shape);

  std::string_view name;
  std::vector<std::string_view> parameters;
  int64_t event_rank = 0;  ///< trailing axes that belong to one outcome
  bool counts = false;     ///< the first parameter is a number of trials
  At log_prob = nullptr;
  Of entropy = nullptr, mean = nullptr, variance = nullptr;
  At cdf = nullptr, icdf = nullptr;
  Draw draw = nullptr;  ///< of the full shape; not differentiable unless `reparametrized`
  bool reparametrized = false;
};

/// All kinds in alphabetical order, and one by name (null if there is none).
std::vector<const Kind*> kinds();
const Kind* find_kind(std::string_view name);
std::vector<std::string> kind_names();

class Distribution : public std::enable_shared_from_this<Distribution> {
 public:
  /// Parameters by position; numbers are taken as float32 and all are broadcast together. `trials`
  /// is the number of trials of a binomial or multinomial where it is known. Throws kUsage for
  /// wrong shapes and types.
  static DistributionPtr make(const Kind& kind, Tensors parameters,
                              std::optional<int64_t> trials = std::nullopt);
  /// The same from what a caller wrote. Next to the declared names: `mean` and `std` of normal
  /// ones, `logits` of categorical and bernoulli; the second argument of multivariate_normal is the
  /// covariance matrix, `precision_matrix` and `scale_tril` are taken by name.
  static DistributionPtr from_arguments(const Kind& kind, Tensors positional,
                                        std::vector<std::pair<std::string, Tensor>> named,
                                        std::optional<int64_t> trials = std::nullopt);
  /// A base whose last `rank` batch axes belong to one outcome.
  static DistributionPtr independent(DistributionPtr base, int64_t rank);
  /// The distribution of transformed outcomes of a base.
  static DistributionPtr transformed(DistributionPtr base, std::vector<TransformPtr> transforms);

  std::string_view name() const { return kind_->name; }
  const Kind& kind() const { return *kind_; }
  const Tensors& parameters() const { return parameters_; }
  const Tensor& parameter(size_t i) const { return parameters_[i]; }
  /// By name; null if there is none.
  const Tensor* find_parameter(std::string_view name) const;
  std::optional<int64_t> trials() const { return trials_; }
  const Shape& batch_shape() const { return batch_shape_; }
  const Shape& event_shape() const { return event_shape_; }
  DType dtype() const;
  const DistributionPtr& base() const { return base_; }  ///< of independent and transformed ones
  int64_t reinterpreted() const { return reinterpreted_; }

  /// log of the density or probability of a value, which broadcasts with the parameters.
  Tensor log_prob(const Tensor& value) const;
  Tensor prob(const Tensor& value) const;
  Tensor entropy() const;
  Tensor mean() const;
  Tensor variance() const;
  Tensor stddev() const;
  Tensor cdf(const Tensor& value) const;   ///< P(outcome <= value)
  Tensor icdf(const Tensor& value) const;  ///< the value with that cdf
  /// Outcomes of shape `shape` + batch + event; rsample's gradient reaches the parameters.
  Tensor sample(const Shape& shape) const;
  Tensor rsample(const Shape& shape) const;
  /// Logits of relaxed Bernoulli outcomes (Maddison et al., "The Concrete Distribution", 2017).
  Tensor relaxed_sample(const Shape& shape, double temperature) const;
  /// KL(this || other); kUsage for pairs without a rule.
  Tensor kl_divergence(const Distribution& other) const;

  /// Throws kUsage: "normal: …".
  template <class... Parts>
  [[noreturn, gnu::always_inline]] void reject(const Parts&... parts) const {
    fail(ErrorCode::kUsage, name(), ": ", parts...);
  }

 private:
  const Kind* kind_ = nullptr;
  Tensors parameters_;
  std::optional<int64_t> trials_;
  Shape batch_shape_, event_shape_;
  DistributionPtr base_;
  std::vector<TransformPtr> transforms_;
  int64_t reinterpreted_ = 0;

  Tensor value_of(const Tensor& value) const;
  Tensor log_prob_of_transformed(const Tensor& value) const;
  Tensor draw(const Shape& shape, bool differentiable) const;
};

/// A mapping of outcomes with its inverse and the logarithm of its Jacobian's determinant.
class Transform {
 public:
  struct Kind {
    using Map = Tensor (*)(const Transform&, const Tensor&);
    std::string_view name;
    std::vector<std::string_view> parameters;    ///< tensors
    int64_t domain_rank = 0, codomain_rank = 0;  ///< axes of one argument and one result
    Map forward = nullptr, inverse = nullptr;
    Map log_det = nullptr;  ///< of the forward mapping at x; null: not injective
  };
  static const std::vector<Kind>& kinds();
  static const Kind* find_kind(std::string_view name);

  static TransformPtr make(const Kind& kind, Tensors parameters);
  static TransformPtr chain(std::vector<TransformPtr> parts);
  static TransformPtr independent(TransformPtr base, int64_t rank);
  static TransformPtr reshape(std::vector<int64_t> in, std::vector<int64_t> out);
  static TransformPtr stack(std::vector<TransformPtr> parts, int64_t axis);

  std::string_view name() const { return kind_->name; }
  const Tensor& parameter(size_t i) const { return parameters_[i]; }
  const std::vector<TransformPtr>& parts() const { return parts_; }  ///< of compositions
  int64_t axis() const { return axis_; }                             ///< of a stack
  const std::vector<int64_t>& in_shape() const { return in_; }       ///< of a reshape
  const std::vector<int64_t>& out_shape() const { return out_; }
  int64_t domain_rank() const { return domain_rank_; }
  int64_t codomain_rank() const { return codomain_rank_; }
  Tensor forward(const Tensor& x) const;
  Tensor inverse(const Tensor& y) const;
  Tensor forward_log_det_jacobian(const Tensor& x) const;
  Tensor inverse_log_det_jacobian(const Tensor& y) const;
  Shape forward_shape(const Shape& shape) const;

 private:
  const Kind* kind_ = nullptr;
  Tensors parameters_;
  std::vector<TransformPtr> parts_;
  int64_t domain_rank_ = 0, codomain_rank_ = 0, axis_ = 0;
  std::vector<int64_t> in_, out_;
};

/// A rule for KL(p || q) of two kinds.
using Divergence = Tensor (*)(const Distribution& p, const Distribution& q);
Divergence find_divergence(std::string_view p, std::string_view q);

/// Sum over the last `rank` axes.
Tensor sum_last(const Tensor& x, int64_t rank);

}  // namespace paddle::distribution
