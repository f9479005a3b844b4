// Adadelta (Zeiler, 2012).

#include "ops/generated/optimizer.h"
#include "optim/optimizer_kind.h"
#include "optim/optimizers/common_keys.h"

namespace paddle::optim {
namespace {

class Adadelta : public UpdateRule {
 public:
  explicit Adadelta(const config::Section& s) : rho_(s.real("rho")), epsilon_(s.real("epsilon")) {}
  std::vector<StateSlot> slots(const std::string&, const Dims&, double) const override {
    return zero_slots({"mean_square", "mean_delta"});
  }
  Tensors update(const UpdateOperands& o) const override {
    return ops::adadelta_update(o.parameter, o.gradient, o.states[0], o.states[1], o.master, o.lr,
                                o.skip, o.scale, rho_, epsilon_, o.weight_decay, o.bound);
  }

 private:
  double rho_, epsilon_;
};

}  // namespace

OptimizerKind adadelta_kind() {
  config::Schema keys;
  keys.add("rho", decay_key("0.95", "decay of the means of squares"))
      .add("epsilon", config::Spec::real().above(0).fallback("1e-6").doc("added to both means"));
  return {.name = "adadelta", .lr = "1", .keys = keys, .make = [](const config::Section& s) {
            return std::make_shared<Adadelta>(s);
          }};
}

}  // namespace paddle::optim
