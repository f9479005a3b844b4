// RMSProp, with epsilon under the root as in PaddlePaddle and TensorFlow.

#include "ops/generated/optimizer.h"
#include "optim/optimizer_kind.h"
#include "optim/optimizers/common_keys.h"

namespace paddle::optim {
namespace {

class RmsProp : public UpdateRule {
 public:
  explicit RmsProp(const config::Section& s)
      : rho_(s.real("rho")),
        epsilon_(s.real("epsilon")),
        momentum_(s.real("momentum")),
        centered_(s.boolean("centered")) {}
  std::vector<StateSlot> slots(const std::string&, const Dims&, double) const override {
    return zero_slots({"mean_square", "mean_grad", "velocity"});
  }
  Tensors update(const UpdateOperands& o) const override {
    return ops::rmsprop_update(o.parameter, o.gradient, o.states[0], o.states[1], o.states[2],
                               o.master, o.lr, o.skip, o.scale, rho_, epsilon_, momentum_,
                               centered_, o.weight_decay, o.bound);
  }

 private:
  double rho_, epsilon_, momentum_;
  bool centered_;
};

}  // namespace

OptimizerKind rmsprop_kind() {
  config::Schema keys;
  keys.add("rho", decay_key("0.95", "decay of the mean of squared gradients"))
      .add("epsilon", epsilon_key("1e-6"))
      .add("momentum", momentum_key("0"))
      .add("centered", config::Spec::boolean().fallback("false").doc(
                           "divide by the variance instead of the second moment"));
  return {.name = "rmsprop", .lr = "0.01", .keys = keys, .make = [](const config::Section& s) {
            return std::make_shared<RmsProp>(s);
          }};
}

}  // namespace paddle::optim
