// Adam with Nesterov's momentum (Dozat, 2016).

#include "ops/generated/optimizer.h"
#include "optim/optimizer_kind.h"
#include "optim/optimizers/common_keys.h"

namespace paddle::optim {
namespace {

class NAdam : public UpdateRule {
 public:
  explicit NAdam(const config::Section& s) : keys_(s), momentum_decay_(s.real("momentum_decay")) {}
  std::vector<StateSlot> slots(const std::string&, const Dims&, double) const override {
    return zero_slots({"moment1", "moment2", "product"});
  }
  Tensors update(const UpdateOperands& o) const override {
    return ops::nadam_update(o.parameter, o.gradient, o.states[0], o.states[1], o.states[2],
                             o.master, o.lr, o.step, o.skip, o.scale, keys_.beta1, keys_.beta2,
                             keys_.epsilon, momentum_decay_, o.weight_decay, o.bound);
  }

 private:
  AdamKeys keys_;
  double momentum_decay_;
};

}  // namespace

OptimizerKind nadam_kind() {
  config::Schema keys = adam_keys("1e-8");
  keys.add("momentum_decay", config::Spec::real().at_least(0).fallback("0.004").doc(
                                 "how fast the momentum grows to beta1"));
  return {.name = "nadam", .lr = "0.002", .keys = keys, .make = [](const config::Section& s) {
            return std::make_shared<NAdam>(s);
          }};
}

}  // namespace paddle::optim
