// Averaged SGD (Polyak and Juditsky, 1992).

#include "ops/generated/optimizer.h"
#include "optim/optimizer_kind.h"
#include "optim/optimizers/common_keys.h"

namespace paddle::optim {
namespace {

class AveragedSgd : public UpdateRule {
 public:
  explicit AveragedSgd(const config::Section& s)
      : lambd_(s.real("lambd")), alpha_(s.real("alpha")), t0_(s.real("t0")) {}
  std::vector<StateSlot> slots(const std::string&, const Dims&, double) const override {
    return zero_slots({"average"});
  }
  Tensors update(const UpdateOperands& o) const override {
    return ops::asgd_update(o.parameter, o.gradient, o.states[0], o.master, o.lr, o.step, o.skip,
                            o.scale, lambd_, alpha_, t0_, o.weight_decay, o.bound);
  }

 private:
  double lambd_, alpha_, t0_;
};

}  // namespace

OptimizerKind asgd_kind() {
  using config::Spec;
  config::Schema keys;
  keys.add("lambd", Spec::real().at_least(0).fallback("1e-4").doc("how fast the rate falls"))
      .add("alpha", Spec::real().at_least(0).fallback("0.75").doc("power of that fall"))
      .add("t0", Spec::real().at_least(0).fallback("1e6").doc(
                     "updates before the state `average` is a mean of parameters"));
  return {.name = "asgd", .lr = "0.01", .keys = keys, .make = [](const config::Section& s) {
            return std::make_shared<AveragedSgd>(s);
          }};
}

}  // namespace paddle::optim
