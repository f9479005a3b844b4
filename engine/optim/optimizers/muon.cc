// Muon (Jordan et al., 2024): momentum whose matrices are orthogonalized by the iteration of Newton
// and Schulz. All axes after the first count as one. Matrices are [inputs, outputs], as those of
// `linear`; kernels of convolutions begin with their outputs. AdamW updates all other parameters.

#include <algorithm>
#include <cmath>

#include "ops/core/operators.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"
#include "optim/composed.h"
#include "optim/optimizer_kind.h"
#include "optim/optimizers/common_keys.h"

namespace paddle::optim {
namespace {

/// The matrix with the singular vectors of `x` and singular values near 1.
Tensor orthogonalized(const Tensor& x, int64_t rows, int64_t columns, int64_t iterations) {
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
  const bool tall = rows > columns;
  Tensor y = tall ? ops::transpose(x, {1, 0}) : x;
  y = y / ops::maximum(norm_of(y), Tensor::number(1e-7));
  for (int64_t i = 0; i < iterations; ++i) {
    const Tensor gram = ops::matmul(y, y, false, true);
    y = y * kA + ops::matmul(gram * kB + ops::matmul(gram, gram) * kC, y);
  }
  return tall ? ops::transpose(y, {1, 0}) : y;
}

class Muon : public UpdateRule {
 public:
  explicit Muon(const config::Section& s)
      : momentum_(s.real("momentum")),
        nesterov_(s.boolean("nesterov")),
        iterations_(s.integer("iterations")),
        match_rms_(s.boolean("match_rms")),
        adamw_(s.texts("adamw")),
        adamw_lr_(s.real("adamw_lr")),
        adam_(s) {}

  std::vector<StateSlot> slots(const std::string& name, const Dims& shape, double) const override {
    if (is_orthogonalized(name, shape)) return zero_slots({"velocity"});
    return zero_slots({"moment1", "moment2"});
  }

  Tensors update(const UpdateOperands& o) const override {
    const ComposedUpdate u(o);
    const Dims shape = concrete(u.value().shape());
    if (!is_orthogonalized(o.name, shape))
      return adamw(u.rate() * (o.base_lr != 0 ? adamw_lr_ / o.base_lr : 0), o.weight_decay, u);
    const Tensor velocity = mixed(u.state(0), u.gradient(), momentum_);
    const Tensor update = nesterov_ ? mixed(velocity, u.gradient(), momentum_) : velocity;
    const int64_t rows = shape[0], columns = element_count(std::span<const int64_t>(shape)) / rows;
    const Tensor matrix = ops::reshape(update, Shape{Dim(rows), Dim(columns)});
    const Tensor direction =
        ops::reshape(orthogonalized(matrix, rows, columns, iterations_), u.value().shape());
    const auto outputs = static_cast<double>(shape.size() == 2 ? columns : rows),
               inputs = static_cast<double>(shape.size() == 2 ? rows : columns);
    const double size = match_rms_ ? 0.2 * std::sqrt(std::max(outputs, inputs))
                                   : std::sqrt(std::max(1.0, outputs / inputs));
    return u.results(u.value() * (1.0 - u.rate() * o.weight_decay) - direction * (u.rate() * size),
                     {velocity});
  }

 private:
  bool is_orthogonalized(const std::string& name, const Dims& shape) const {
    return shape.size() >= 2 &&
           std::none_of(adamw_.begin(), adamw_.end(),
                        [&](const std::string& p) { return matches_pattern(p, name); });
  }

  Tensors adamw(const Tensor& rate, double decay, const ComposedUpdate& u) const {
    const Tensor mean = mixed(u.state(0), u.gradient(), adam_.beta1),
                 square = mixed(u.state(1), ops::square(u.gradient()), adam_.beta2);
    const Tensor root = ops::sqrt(square / u.in_type(bias_correction(u.step(), adam_.beta2))) +
                        Tensor::number(adam_.epsilon);
    const Tensor step = rate / u.in_type(bias_correction(u.step(), adam_.beta1));
    return u.results(u.value() * (1.0 - rate * decay) - step * mean / root, {mean, square});
  }

  double momentum_;
  bool nesterov_;
  int64_t iterations_;
  bool match_rms_;  ///< updates are as large as those of AdamW
  std::vector<std::string> adamw_;
  double adamw_lr_;
  AdamKeys adam_;
};

}  // namespace

OptimizerKind muon_kind() {
  using config::Spec;
  config::Schema keys;
  keys.add("momentum", decay_key("0.95", "decay of the mean of gradients"))
      .add("nesterov", nesterov_key("true"))
      .add("iterations", Spec::integer().at_least(1).at_most(100).fallback("5").doc(
                             "of Newton and Schulz, which orthogonalize an update"))
      .add("match_rms", Spec::boolean().fallback("false").doc(
                            "scale updates as large as those of AdamW, whose rates then apply"))
      .add("adamw", Spec::list(Spec::text())
                        .or_else(Spec::text())
                        .fallback("[]")
                        .doc("patterns of matrices that AdamW updates, as it does all vectors: "
                             "embeddings, the last layer"))
      .add("adamw_lr", Spec::real().at_least(0).fallback("3e-4").doc("base rate of AdamW"))
      .add("beta1", decay_key("0.9", "AdamW: decay of the mean of gradients"))
      .add("beta2", decay_key("0.999", "AdamW: decay of the mean of squared gradients"))
      .add("epsilon", Spec::real().above(0).fallback("1e-8").doc("AdamW: in the denominator"));
  return {.name = "muon",
          .lr = "0.02",
          .keys = keys,
          .decouples_weight_decay = true,
          .needs_whole_parameters = true,
          .make = [](const config::Section& s) { return std::make_shared<Muon>(s); }};
}

}  // namespace paddle::optim
