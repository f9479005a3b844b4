// Schedule-free AdamW (Defazio et al., "The Road Less Scheduled", 2024). The parameter is the point
// where gradients are taken; the states are the sequence of plain steps, its weighted mean (the
// weights to evaluate), the second moment, the sum of the weights and the largest rate so far.

#include "ops/core/operators.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"
#include "optim/composed.h"
#include "optim/optimizer_kind.h"
#include "optim/optimizers/common_keys.h"

namespace paddle::optim {
namespace {

class ScheduleFreeAdamW : public UpdateRule {
 public:
  explicit ScheduleFreeAdamW(const config::Section& s)
      : keys_(s), warmup_steps_(s.integer("warmup_steps")) {}

  std::vector<StateSlot> slots(const std::string&, const Dims&, double) const override {
    return {{.name = "plain", .is_copy = true},
            {.name = kEvaluationSlot, .is_copy = true},
            {.name = "moment2"},
            {.name = "weight_sum", .shape = Dims{}},
            {.name = "largest_rate", .shape = Dims{}}};
  }

  Tensors update(const UpdateOperands& o) const override {
    const ComposedUpdate u(o);
    Tensor rate = ops::cast(u.rate(), DType::kF64);
    if (warmup_steps_ > 0)
      rate =
          rate * ops::minimum(u.step() / static_cast<double>(warmup_steps_), Tensor::number(1.0));
    const Tensor largest = ops::maximum(ops::cast(u.state(4), DType::kF64), rate);
    const Tensor weight = ops::square(largest);
    const Tensor sum = ops::cast(u.state(3), DType::kF64) + weight;
    const Tensor share = u.in_type(weight / ops::maximum(sum, Tensor::number(1e-300)));
    const Tensor square = mixed(u.state(2), ops::square(u.gradient()), keys_.beta2);
    const Tensor root = ops::sqrt(square / u.in_type(bias_correction(u.step(), keys_.beta2))) +
                        Tensor::number(keys_.epsilon);
    const Tensor direction = u.gradient() / root + u.value() * o.weight_decay;
    const Tensor plain = u.state(0) - u.in_type(rate) * direction;
    // The parameter moves towards the sequence as it was before this step.
    const Tensor value = u.value() + (u.state(0) - u.value()) * share +
                         direction * (u.in_type(rate) * ((1.0 - share) * keys_.beta1 - 1.0));
    const Tensor mean = value + (plain - value) * (1 - 1 / keys_.beta1);
    return u.results(value, {plain, mean, square, sum, largest});
  }

 private:
  AdamKeys keys_;
  int64_t warmup_steps_;
};

}  // namespace

OptimizerKind schedule_free_adamw_kind() {
  using config::Spec;
  config::Schema keys;
  keys.add("beta1", Spec::real().above(0).below(1).fallback("0.9").doc(
                        "place of the gradient between the steps (0) and their mean (1)"))
      .add("beta2", decay_key("0.999", "decay of the mean of squared gradients"))
      .add("epsilon", epsilon_key("1e-8"))
      .add("warmup_steps", Spec::integer().at_least(0).fallback("0").doc(
                               "updates in which the rate grows; they weigh less in the mean"))
      .renamed("rising", "warmup_steps");
  return {.name = "schedule_free_adamw",
          .lr = "0.0025",
          .keys = keys,
          .decouples_weight_decay = true,
          .needs_whole_parameters = true,
          .make = [](const config::Section& s) { return std::make_shared<ScheduleFreeAdamW>(s); }};
}

}  // namespace paddle::optim
