// Adafactor (Shazeer and Stern, 2018) in the form of PyTorch's: second moments of matrices as the
// product of means over rows and columns, steps relative to the parameter.

#include <cmath>
#include <limits>

#include "ops/core/operators.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "optim/composed.h"
#include "optim/optimizer_kind.h"

namespace paddle::optim {
namespace {

class Adafactor : public UpdateRule {
 public:
  explicit Adafactor(const config::Section& s)
      : beta2_decay_(s.real("beta2_decay")),
        parameter_epsilon_(s.real("parameter_epsilon")),
        threshold_(s.real("threshold")) {}

  std::vector<StateSlot> slots(const std::string&, const Dims& shape, double) const override {
    if (shape.size() < 2) return {{.name = "variance"}};
    const auto with_one = [&](size_t axis) {
      Dims out = shape;
      out[axis] = 1;
      return out;
    };
    return {{.name = "rows", .shape = with_one(shape.size() - 1)},
            {.name = "columns", .shape = with_one(shape.size() - 2)}};
  }

  Tensors update(const UpdateOperands& o) const override {
    const ComposedUpdate u(o);
    const double smallest = u.value().dtype() == DType::kF64
                                ? std::numeric_limits<double>::epsilon()
                                : std::numeric_limits<float>::epsilon();
    const Tensor g = u.gradient();
    const Tensor share = u.in_type(ops::exp(ops::log(u.step()) * beta2_decay_));
    const Dims shape = concrete(u.value().shape());
    const double root =
        std::sqrt(static_cast<double>(element_count(std::span<const int64_t>(shape))));
    const Tensor size = norm_of(u.value()) / root;
    const Tensor relative = ops::minimum(u.rate(), u.in_type(1.0 / ops::sqrt(u.step())));
    const Tensor rate = ops::maximum(size, Tensor::number(parameter_epsilon_)) * relative;
    Tensor variance;
    Tensors states;
    if (g.ndim() >= 2) {
      const Tensor square = ops::square(g);
      const auto towards = [&](const Tensor& old, const Tensor& next) {
        return old + (next - old) * share;
      };
      const Tensor rows = towards(u.state(0), ops::mean(square, std::vector<int64_t>{-1}, true));
      const Tensor columns = towards(u.state(1), ops::mean(square, std::vector<int64_t>{-2}, true));
      variance =
          ops::matmul(rows, columns) /
          ops::maximum(ops::mean(rows, std::vector<int64_t>{-2}, true), Tensor::number(smallest));
      states = {rows, columns};
    } else {
      variance = u.state(0) + (ops::square(g) - u.state(0)) * share;
      states = {variance};
    }
    const Tensor update =
        g * ops::rsqrt(ops::maximum(variance, Tensor::number(smallest * smallest)));
    const Tensor excess = ops::maximum(norm_of(update) / (root * threshold_), Tensor::number(1.0));
    return u.results(u.value() * (1.0 - u.rate() * o.weight_decay) - update * (rate / excess),
                     states);
  }

 private:
  double beta2_decay_, parameter_epsilon_, threshold_;
};

}  // namespace

OptimizerKind adafactor_kind() {
  using config::Spec;
  config::Schema keys;
  keys.add("beta2_decay", Spec::real().at_most(0).fallback("-0.8").doc(
                              "second moments change by update^beta2_decay"))
      .add("parameter_epsilon", Spec::real().at_least(0).fallback("1e-3").doc(
                                    "smallest root mean square of a parameter"))
      .add("threshold",
           Spec::real().above(0).fallback("1").doc("largest root mean square of an update"));
  return {.name = "adafactor",
          .lr = "0.01",
          .keys = keys,
          .decouples_weight_decay = true,
          .needs_whole_parameters = true,
          .make = [](const config::Section& s) { return std::make_shared<Adafactor>(s); }};
}

}  // namespace paddle::optim
