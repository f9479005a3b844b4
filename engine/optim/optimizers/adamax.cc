// Adamax (Kingma and Ba, 2015).

#include "ops/generated/optimizer.h"
#include "optim/optimizer_kind.h"
#include "optim/optimizers/common_keys.h"

namespace paddle::optim {
namespace {

class Adamax : public UpdateRule {
 public:
  explicit Adamax(const config::Section& s) : keys_(s) {}
  std::vector<StateSlot> slots(const std::string&, const Dims&, double) const override {
    return zero_slots({"moment", "norm"});
  }
  Tensors update(const UpdateOperands& o) const override {
    return ops::adamax_update(o.parameter, o.gradient, o.states[0], o.states[1], o.master, o.lr,
                              o.step, o.skip, o.scale, keys_.beta1, keys_.beta2, keys_.epsilon,
                              o.weight_decay, o.bound);
  }

 private:
  AdamKeys keys_;
};

}  // namespace

OptimizerKind adamax_kind() {
  return {.name = "adamax",
          .lr = "0.002",
          .keys = adam_keys("1e-8"),
          .make = [](const config::Section& s) { return std::make_shared<Adamax>(s); }};
}

}  // namespace paddle::optim
