// Optimizers as objects: properties of the built-in ones, and one that is added while the program
// runs.

#include "optim/optimizer_kind.h"

#include <gtest/gtest.h>

#include "ops/core/operators.h"
#include "optim/composed.h"
#include "optim/optimizer.h"
#include "runtime/execute.h"

namespace paddle::optim {
namespace {

using Names = std::vector<std::string>;

Names names_with(bool OptimizerKind::*property) {
  Names out;
  for (const auto& kind : optimizer_kinds().all())
    if ((*kind).*property) out.push_back(kind->name);
  return out;
}

Names slots_of(const std::string& name, const Dims& shape) {
  Names out;
  for (const StateSlot& slot : Optimizer({.rule = make_rule(name)}).slots("p", shape))
    out.push_back(slot.name);
  return out;
}

TEST(OptimizerKinds, StateTheirProperties) {
  EXPECT_EQ(names_with(&OptimizerKind::supports_sparse_update),
            (Names{"sgd", "momentum", "adam", "adamw", "adagrad"}));
  EXPECT_EQ(names_with(&OptimizerKind::needs_whole_parameters),
            (Names{"lamb", "lars", "adafactor", "muon", "schedule_free_adamw", "lbfgs"}));
  EXPECT_EQ(names_with(&OptimizerKind::is_minimizer), (Names{"lbfgs"}));
  EXPECT_TRUE(Optimizer({.rule = make_rule("schedule_free_adamw")}).has_evaluation_weights());
  EXPECT_FALSE(Optimizer({.rule = make_rule("adamw")}).has_evaluation_weights());
}

// These names are in checkpoints.
TEST(OptimizerKinds, NameTheirStates) {
  EXPECT_EQ(slots_of("adamw", {2, 3}), (Names{"moment1", "moment2"}));
  EXPECT_EQ(slots_of("rmsprop", {2, 3}), (Names{"mean_square", "mean_grad", "velocity"}));
  EXPECT_EQ(slots_of("adafactor", {2, 3}), (Names{"rows", "columns"}));
  EXPECT_EQ(slots_of("adafactor", {3}), (Names{"variance"}));
  EXPECT_EQ(slots_of("muon", {2, 3}), (Names{"velocity"}));
  EXPECT_EQ(slots_of("muon", {3}), (Names{"moment1", "moment2"}));
  EXPECT_EQ(slots_of("lbfgs", {3}), (Names{"direction", "previous_gradient", "changes", "steps"}));
}

TEST(OptimizerKinds, RejectBadNamesAndValues) {
  const auto message_of = [](const char* name, const char* keys) -> std::string {
    try {
      make_rule(name, keys);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message_of("adan_w", "{}").find("unknown optimizer 'adan_w'"), std::string::npos);
  EXPECT_NE(message_of("adam", "{beta1: 2}").find("beta1"), std::string::npos);
  EXPECT_NE(message_of("adam", "{beta3: 0.5}").find("beta3"), std::string::npos);
  // An old name of a key.
  EXPECT_EQ(message_of("schedule_free_adamw", "{rising: 5}"), "");
  EXPECT_NE(message_of("schedule_free_adamw", "{rising: -1}").find("warmup_steps"),
            std::string::npos);
}

/// Moves by the sign of the gradient times `gain`.
class SignDescent : public UpdateRule {
 public:
  explicit SignDescent(double gain) : gain_(gain) {}
  std::vector<StateSlot> slots(const std::string&, const Dims&, double) const override {
    return zero_slots({"sum"});
  }
  Tensors update(const UpdateOperands& o) const override {
    const ComposedUpdate u(o);
    const Tensor sum = u.state(0) + u.gradient();
    return u.results(u.value() - u.rate() * sum * gain_, {sum});
  }

 private:
  double gain_;
};

OptimizerKind sign_descent() {
  config::Schema keys;
  keys.add("gain", config::Spec::real().above(0).fallback("2").doc("factor of an update"));
  return {.name = "sign_descent",
          .lr = "0.5",
          .keys = keys,
          .make = [](const config::Section& s) -> std::shared_ptr<const UpdateRule> {
            return std::make_shared<SignDescent>(s.real("gain"));
          }};
}

TEST(OptimizerKinds, MayBeAddedAtRunTime) {
  optimizer_kinds().add({sign_descent()}, {"plugin.so"});
  EXPECT_THROW(optimizer_kinds().add({sign_descent()}, {"other.so"}), Error);
  const Optimizer optimizer({.rule = make_rule("sign_descent", "{gain: 3}"), .lr = 0.5});
  EXPECT_EQ(optimizer.name(), "sign_descent");
  EXPECT_EQ(optimizer.slots("p", {2})[0].name, "sum");
  runtime::register_backends();
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  const Tensors updated = optimizer.update(
      "p", Tensor(Array::from<float>({1, 2}, {2})), Tensor(Array::from<float>({1, -1}, {2})),
      {Tensor(Array::from<float>({0, 1}, {2}))}, {.lr = Tensor::number(0.5)});
  EXPECT_EQ(updated[0].array().number(0), 1 - 0.5 * 3);
  EXPECT_EQ(updated[0].array().number(1), 2);
  EXPECT_EQ(updated[1].array().number(1), 0);
  optimizer_kinds().remove({"sign_descent"});
  EXPECT_EQ(optimizer_kinds().find("sign_descent"), nullptr);
}

}  // namespace
}  // namespace paddle::optim
