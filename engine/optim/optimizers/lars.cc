// LARS (You et al., 2017).

#include "ops/generated/optimizer.h"
#include "optim/optimizer_kind.h"
#include "optim/optimizers/common_keys.h"

namespace paddle::optim {
namespace {

class Lars : public UpdateRule {
 public:
  explicit Lars(const config::Section& s)
      : momentum_(s.real("momentum")),
        coefficient_(s.real("coefficient")),
        epsilon_(s.real("epsilon")) {}
  std::vector<StateSlot> slots(const std::string&, const Dims&, double) const override {
    return zero_slots({"velocity"});
  }
  Tensors update(const UpdateOperands& o) const override {
    return ops::lars_update(o.parameter, o.gradient, o.states[0], o.master, o.lr, o.skip, o.scale,
                            momentum_, coefficient_, epsilon_, o.weight_decay, o.bound);
  }

 private:
  double momentum_, coefficient_, epsilon_;
};

}  // namespace

OptimizerKind lars_kind() {
  using config::Spec;
  config::Schema keys;
  keys.add("momentum", momentum_key("0.9"))
      .add("coefficient",
           Spec::real().above(0).fallback("0.001").doc("factor of the ratio of norms"))
      .add("epsilon", Spec::real().at_least(0).fallback("0").doc("added to the denominator"));
  return {.name = "lars",
          .lr = "0.1",
          .keys = keys,
          .needs_whole_parameters = true,
          .make = [](const config::Section& s) { return std::make_shared<Lars>(s); }};
}

}  // namespace paddle::optim
