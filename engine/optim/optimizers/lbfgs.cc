// L-BFGS as an optimizer of configs (optim/lbfgs.h has the method).

#include "optim/lbfgs.h"

#include "optim/optimizer_kind.h"

namespace paddle::optim {
namespace {

class Lbfgs : public Minimizer {
 public:
  explicit Lbfgs(const config::Section& s) {
    options_.iterations = s.integer("iterations");
    options_.evaluations =
        s.has("evaluations") ? s.integer("evaluations") : options_.iterations * 5 / 4;
    options_.history = s.integer("history");
    options_.tolerance_grad = s.real("tolerance_grad");
    options_.tolerance_change = s.real("tolerance_change");
    options_.line_search = s.text("line_search") == "strong_wolfe";
  }

  std::vector<StateSlot> slots(const std::string&, const Dims& shape, double) const override {
    Dims rows = {options_.history};
    rows.insert(rows.end(), shape.begin(), shape.end());
    return {{.name = "direction"},
            {.name = "previous_gradient"},
            {.name = "changes", .shape = rows},
            {.name = "steps", .shape = rows}};
  }

  int64_t number_count() const override { return kLbfgsNumbers; }

  double minimize(double rate, const Pieces& parameters, const Pieces& gradients, Memory& memory,
                  const Objective& objective) const override {
    LbfgsMemory own = {memory.states[0], memory.states[1], memory.states[2], memory.states[3],
                       memory.numbers};
    return lbfgs_step(options_, rate, parameters, gradients, own, objective);
  }

 private:
  LbfgsOptions options_;
};

}  // namespace

OptimizerKind lbfgs_kind() {
  using config::Spec;
  config::Schema keys;
  keys.add("iterations",
           Spec::integer().at_least(1).at_most(1 << 20).fallback("20").doc("in an update, at most"))
      .add("evaluations", Spec::integer().at_least(1).at_most(1 << 20).doc(
                              "of the loss in an update, at most; default: 1.25 times iterations"))
      .add("history", Spec::integer().at_least(1).at_most(10000).fallback("20").doc(
                          "stored steps, each twice the size of the parameters"))
      .add("tolerance_grad", Spec::real().at_least(0).fallback("1e-7").doc(
                                 "largest element of the gradient at a minimum"))
      .add("tolerance_change",
           Spec::real().at_least(0).fallback("1e-9").doc(
               "an update ends where loss or parameters change by less than this"))
      .add("line_search", Spec::word({"strong_wolfe", "none"})
                              .fallback("strong_wolfe")
                              .doc("line search for the length of a step; none: it is lr"));
  return {.name = "lbfgs",
          .lr = "1",
          .keys = keys,
          .needs_whole_parameters = true,
          .is_minimizer = true,
          .make = [](const config::Section& s) { return std::make_shared<Lbfgs>(s); }};
}

}  // namespace paddle::optim
