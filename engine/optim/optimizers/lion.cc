// Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023).

#include "ops/core/operators.h"
#include "ops/generated/math.h"
#include "optim/composed.h"
#include "optim/optimizer_kind.h"
#include "optim/optimizers/common_keys.h"

namespace paddle::optim {
namespace {

class Lion : public UpdateRule {
 public:
  explicit Lion(const config::Section& s) : beta1_(s.real("beta1")), beta2_(s.real("beta2")) {}
  std::vector<StateSlot> slots(const std::string&, const Dims&, double) const override {
    return zero_slots({"moment"});
  }
  Tensors update(const UpdateOperands& o) const override {
    const ComposedUpdate u(o);
    const Tensor direction = ops::sign(mixed(u.state(0), u.gradient(), beta1_));
    const Tensor value = u.value() * (1.0 - u.rate() * o.weight_decay) - u.rate() * direction;
    return u.results(value, {mixed(u.state(0), u.gradient(), beta2_)});
  }

 private:
  double beta1_, beta2_;
};

}  // namespace

OptimizerKind lion_kind() {
  config::Schema keys;
  keys.add("beta1", decay_key("0.9", "share of the moment in the direction of an update"))
      .add("beta2", decay_key("0.99", "decay of the moment"));
  return {.name = "lion",
          .lr = "0.0001",
          .keys = keys,
          .decouples_weight_decay = true,
          .make = [](const config::Section& s) { return std::make_shared<Lion>(s); }};
}

}  // namespace paddle::optim
