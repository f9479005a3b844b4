// Rectified Adam (Liu et al., 2020).

#include "ops/generated/optimizer.h"
#include "optim/optimizer_kind.h"
#include "optim/optimizers/common_keys.h"

namespace paddle::optim {
namespace {

class RAdam : public UpdateRule {
 public:
  explicit RAdam(const config::Section& s) : keys_(s) {}
  std::vector<StateSlot> slots(const std::string&, const Dims&, double) const override {
    return zero_slots({"moment1", "moment2"});
  }
  Tensors update(const UpdateOperands& o) const override {
    return ops::radam_update(o.parameter, o.gradient, o.states[0], o.states[1], o.master, o.lr,
                             o.step, o.skip, o.scale, keys_.beta1, keys_.beta2, keys_.epsilon,
                             o.weight_decay, o.bound);
  }

 private:
  AdamKeys keys_;
};

}  // namespace

OptimizerKind radam_kind() {
  return {.name = "radam",
          .lr = "0.001",
          .keys = adam_keys("1e-8"),
          .make = [](const config::Section& s) { return std::make_shared<RAdam>(s); }};
}

}  // namespace paddle::optim
