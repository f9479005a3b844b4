// LAMB (You et al., 2020).

#include "ops/generated/optimizer.h"
#include "optim/optimizer_kind.h"
#include "optim/optimizers/common_keys.h"

namespace paddle::optim {
namespace {

class Lamb : public UpdateRule {
 public:
  explicit Lamb(const config::Section& s) : keys_(s) {}
  std::vector<StateSlot> slots(const std::string&, const Dims&, double) const override {
    return zero_slots({"moment1", "moment2"});
  }
  Tensors update(const UpdateOperands& o) const override {
    return ops::lamb_update(o.parameter, o.gradient, o.states[0], o.states[1], o.master, o.lr,
                            o.step, o.skip, o.scale, keys_.beta1, keys_.beta2, keys_.epsilon,
                            o.weight_decay, o.bound);
  }

 private:
  AdamKeys keys_;
};

}  // namespace

OptimizerKind lamb_kind() {
  return {.name = "lamb",
          .lr = "0.001",
          .keys = adam_keys("1e-6"),
          .decouples_weight_decay = true,
          .needs_whole_parameters = true,
          .make = [](const config::Section& s) { return std::make_shared<Lamb>(s); }};
}

}  // namespace paddle::optim
