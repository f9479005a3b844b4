// Adagrad (Duchi et al., 2011).

#include "ops/generated/optimizer.h"
#include "optim/optimizer_kind.h"
#include "optim/optimizers/common_keys.h"

namespace paddle::optim {
namespace {

class Adagrad : public UpdateRule {
 public:
  explicit Adagrad(const config::Section& s)
      : epsilon_(s.real("epsilon")), initial_(s.real("initial_accumulator")) {}
  std::vector<StateSlot> slots(const std::string&, const Dims&, double) const override {
    return {{.name = "moment", .initial = initial_}};
  }
  Tensors update(const UpdateOperands& o) const override {
    return ops::adagrad_update(o.parameter, o.gradient, o.states[0], o.master, o.lr, o.skip,
                               o.scale, epsilon_, o.weight_decay, o.bound);
  }
  std::optional<RowRule> row_rule() const override {
    return RowRule{.kind = RowRule::Kind::kAdagrad, .epsilon = epsilon_};
  }

 private:
  double epsilon_, initial_;
};

}  // namespace

OptimizerKind adagrad_kind() {
  config::Schema keys;
  keys.add("epsilon", epsilon_key("1e-6"))
      .add("initial_accumulator",
           config::Spec::real().at_least(0).fallback("0").doc("initial sum of squared gradients"));
  return {.name = "adagrad",
          .lr = "0.01",
          .keys = keys,
          .supports_sparse_update = true,
          .make = [](const config::Section& s) { return std::make_shared<Adagrad>(s); }};
}

}  // namespace paddle::optim
