// Plain stochastic gradient descent.

#include "ops/generated/optimizer.h"
#include "optim/optimizer_kind.h"

namespace paddle::optim {
namespace {

class Sgd : public UpdateRule {
 public:
  std::vector<StateSlot> slots(const std::string&, const Dims&, double) const override {
    return {};
  }
  Tensors update(const UpdateOperands& o) const override {
    return ops::sgd_update(o.parameter, o.gradient, o.master, o.lr, o.skip, o.scale, o.weight_decay,
                           o.bound);
  }
  std::optional<RowRule> row_rule() const override { return RowRule{.kind = RowRule::Kind::kSgd}; }
};

}  // namespace

OptimizerKind sgd_kind() {
  return {.name = "sgd",
          .lr = "0.01",
          .supports_sparse_update = true,
          .make = [](const config::Section&) { return std::make_shared<Sgd>(); }};
}

}  // namespace paddle::optim
