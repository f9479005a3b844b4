// Resilient propagation (Riedmiller and Braun, 1993).

#include "ops/generated/optimizer.h"
#include "optim/optimizer_kind.h"
#include "optim/optimizers/common_keys.h"

namespace paddle::optim {
namespace {

class Rprop : public UpdateRule {
 public:
  explicit Rprop(const config::Section& s)
      : shrink_(s.real("shrink")),
        grow_(s.real("grow")),
        min_step_(s.real("min_step")),
        max_step_(s.real("max_step")) {}
  std::vector<StateSlot> slots(const std::string&, const Dims&, double base_lr) const override {
    return {{.name = "previous"}, {.name = "step_size", .initial = base_lr}};
  }
  Tensors update(const UpdateOperands& o) const override {
    return ops::rprop_update(o.parameter, o.gradient, o.states[0], o.states[1], o.master, o.lr,
                             o.skip, o.scale, shrink_, grow_, min_step_, max_step_, o.weight_decay,
                             o.bound);
  }

 private:
  double shrink_, grow_, min_step_, max_step_;
};

}  // namespace

OptimizerKind rprop_kind() {
  using config::Spec;
  config::Schema keys;
  keys.add("shrink", Spec::real().above(0).below(1).fallback("0.5").doc(
                         "factor of a step size where the gradient changes its sign"))
      .add("grow", Spec::real().above(1).fallback("1.2").doc(
                       "factor of a step size where the gradient keeps its sign"))
      .add("min_step", Spec::real().at_least(0).fallback("1e-6").doc("smallest step size"))
      .add("max_step", Spec::real().above(0).fallback("50").doc("largest step size"));
  return {.name = "rprop", .lr = "0.01", .keys = keys, .make = [](const config::Section& s) {
            return std::make_shared<Rprop>(s);
          }};
}

}  // namespace paddle::optim
