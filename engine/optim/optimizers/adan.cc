// Adan (Xie et al., "Adan: Adaptive Nesterov Momentum Algorithm for Faster Optimizing Deep Models",
// 2022), with bias correction and the proximal form of weight decay.

#include "ops/core/operators.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"
#include "optim/composed.h"
#include "optim/optimizer_kind.h"
#include "optim/optimizers/common_keys.h"

namespace paddle::optim {
namespace {

class Adan : public UpdateRule {
 public:
  explicit Adan(const config::Section& s)
      : beta1_(s.real("beta1")),
        beta2_(s.real("beta2")),
        beta3_(s.real("beta3")),
        epsilon_(s.real("epsilon")) {}

  std::vector<StateSlot> slots(const std::string&, const Dims&, double) const override {
    return zero_slots({"moment1", "moment_diff", "moment2", "previous_gradient"});
  }

  Tensors update(const UpdateOperands& o) const override {
    const ComposedUpdate u(o);
    const Tensor step = u.step(), g = u.gradient();
    // The first update has no previous gradient.
    const Tensor has_previous = u.in_type(ops::greater_than(step, Tensor::number(1.0)));
    const Tensor difference = (g - u.state(3)) * has_previous;
    const Tensor moment1 = mixed(u.state(0), g, beta1_),
                 moment_diff = mixed(u.state(1), difference, beta2_),
                 moment2 = mixed(u.state(2), ops::square(g + difference * beta2_), beta3_);
    const Tensor direction = moment1 / u.in_type(bias_correction(step, beta1_)) +
                             moment_diff * beta2_ / u.in_type(bias_correction(step, beta2_));
    const Tensor root =
        ops::sqrt(moment2 / u.in_type(bias_correction(step, beta3_))) + Tensor::number(epsilon_);
    const Tensor value =
        (u.value() - u.rate() * direction / root) / (1.0 + u.rate() * o.weight_decay);
    return u.results(value, {moment1, moment_diff, moment2, g});
  }

 private:
  double beta1_, beta2_, beta3_, epsilon_;
};

}  // namespace

OptimizerKind adan_kind() {
  config::Schema keys;
  keys.add("beta1", decay_key("0.98", "decay of the mean of gradients"))
      .add("beta2", decay_key("0.92", "decay of the mean of differences between gradients"))
      .add("beta3", decay_key("0.99", "decay of the mean of squares"))
      .add("epsilon", epsilon_key("1e-8"));
  return {.name = "adan",
          .lr = "0.001",
          .keys = keys,
          .decouples_weight_decay = true,
          .make = [](const config::Section& s) { return std::make_shared<Adan>(s); }};
}

}  // namespace paddle::optim
