// Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019).

#include "ops/generated/optimizer.h"
#include "optim/optimizer_kind.h"
#include "optim/optimizers/common_keys.h"

namespace paddle::optim {
namespace {

class Adam : public UpdateRule {
 public:
  Adam(const config::Section& s, bool decoupled) : keys_(s), decoupled_(decoupled) {}
  std::vector<StateSlot> slots(const std::string&, const Dims&, double) const override {
    return zero_slots({"moment1", "moment2"});
  }
  Tensors update(const UpdateOperands& o) const override {
    return ops::adam_update(o.parameter, o.gradient, o.states[0], o.states[1], o.master, o.lr,
                            o.step, o.skip, o.scale, keys_.beta1, keys_.beta2, keys_.epsilon,
                            o.weight_decay, decoupled_, o.bound);
  }
  std::optional<RowRule> row_rule() const override {
    return RowRule{.kind = RowRule::Kind::kAdam,
                   .a = keys_.beta1,
                   .b = keys_.beta2,
                   .epsilon = keys_.epsilon,
                   .flag = decoupled_};
  }

 private:
  AdamKeys keys_;
  bool decoupled_;
};

}  // namespace

OptimizerKind adam_kind() {
  return {.name = "adam",
          .lr = "0.001",
          .keys = adam_keys("1e-8"),
          .supports_sparse_update = true,
          .make = [](const config::Section& s) { return std::make_shared<Adam>(s, false); }};
}

OptimizerKind adamw_kind() {
  OptimizerKind kind = adam_kind();
  kind.name = "adamw";
  kind.decouples_weight_decay = true;
  kind.make = [](const config::Section& s) { return std::make_shared<Adam>(s, true); };
  return kind;
}

}  // namespace paddle::optim
