// Stochastic gradient descent with momentum.

#include "ops/generated/optimizer.h"
#include "optim/optimizer_kind.h"
#include "optim/optimizers/common_keys.h"

namespace paddle::optim {
namespace {

class Momentum : public UpdateRule {
 public:
  explicit Momentum(const config::Section& s)
      : momentum_(s.real("momentum")), nesterov_(s.boolean("nesterov")) {}
  std::vector<StateSlot> slots(const std::string&, const Dims&, double) const override {
    return zero_slots({"velocity"});
  }
  Tensors update(const UpdateOperands& o) const override {
    return ops::momentum_update(o.parameter, o.gradient, o.states[0], o.master, o.lr, o.skip,
                                o.scale, momentum_, nesterov_, o.weight_decay, o.bound);
  }
  std::optional<RowRule> row_rule() const override {
    return RowRule{.kind = RowRule::Kind::kMomentum, .a = momentum_, .flag = nesterov_};
  }

 private:
  double momentum_;
  bool nesterov_;
};

}  // namespace

OptimizerKind momentum_kind() {
  config::Schema keys;
  keys.add("momentum", momentum_key("0.9")).add("nesterov", nesterov_key("false"));
  return {.name = "momentum",
          .lr = "0.01",
          .keys = keys,
          .supports_sparse_update = true,
          .make = [](const config::Section& s) { return std::make_shared<Momentum>(s); }};
}

}  // namespace paddle::optim
