#include "optim/composed.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/core/operators.h"
#include "ops/core/row_sparse.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::optim {
namespace {

bool is_sixteen_bit(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

/// Muon orthogonalizes matrices; AdamW updates everything else.
bool is_orthogonalized(const OptimizerOptions& o, const std::string& name, int64_t rank) {
  return rank >= 2 && std::none_of(o.adamw.begin(), o.adamw.end(),
                                   [&](const std::string& p) { return matches_pattern(p, name); });
}

/// The operands that all updates share, in the type in which the update computes.
class Update {
 public:
  Update(const Tensor& parameter, const Tensor& gradient, const Tensors& states,
         const UpdateInputs& inputs)
      : parameter_(parameter), states_(states), inputs_(inputs) {
    value_ = inputs.master.defined() ? inputs.master : parameter;
    if (is_sixteen_bit(value_.dtype())) value_ = ops::cast(value_, DType::kF32);
    gradient_ = ops::cast(densify(gradient), value_.dtype());
    if (inputs.scale.defined()) gradient_ = gradient_ * in_type(inputs.scale);
    if (inputs.bound) gradient_ = ops::clip(gradient_, -*inputs.bound, *inputs.bound);
    rate_ = in_type(inputs.lr);
  }
  const Tensor& value() const { return value_; }
  const Tensor& gradient() const { return gradient_; }
  const Tensor& rate() const { return rate_; }
  const Tensor& state(size_t i) const { return states_[i]; }
  /// The number of the update as a float64, from 1.
  Tensor step() const { return ops::cast(inputs_.step, DType::kF64); }
  Tensor in_type(const Tensor& t) const { return ops::cast(t, value_.dtype()); }
  /// Results: the parameter, the states, the master weight. Where `skip` is true, all stay.
  Tensors results(const Tensor& value, const Tensors& states) const {
    Tensors out = {as(value, parameter_)};
    for (size_t i = 0; i < states.size(); ++i) out.push_back(as(states[i], states_[i]));
    if (inputs_.master.defined()) out.push_back(as(value, inputs_.master));
    return out;
  }

 private:
  Tensor as(const Tensor& next, const Tensor& before) const {
    const Tensor typed = ops::cast(next, before.dtype());
    return inputs_.skip.defined() ? ops::where(inputs_.skip, before, typed) : typed;
  }

  Tensor parameter_;
  const Tensors& states_;
  const UpdateInputs& inputs_;
  Tensor value_, gradient_, rate_;
};

Tensor mixed(const Tensor& old, const Tensor& next, double keep) {
  return old * keep + next * (1 - keep);
}

/// 1 - beta^step.
Tensor correction(const Tensor& step, double beta) {
  return 1.0 - ops::exp(step * std::log(std::max(beta, 1e-300)));
}

Tensor norm_of(const Tensor& x) { return ops::sqrt(ops::sum(ops::square(x))); }

/// Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023.
Tensors lion(const OptimizerOptions& o, double decay, const Update& u) {
  const Tensor direction = ops::sign(mixed(u.state(0), u.gradient(), o.beta1));
  const Tensor value = u.value() * (1.0 - u.rate() * decay) - u.rate() * direction;
  return u.results(value, {mixed(u.state(0), u.gradient(), o.beta2)});
}

/// Shazeer and Stern, "Adafactor", 2018, in the form of PyTorch's: second moments of matrices as
/// the product of means over rows and columns, steps relative to the parameter.
Tensors adafactor(const OptimizerOptions& o, double decay, const Update& u) {
  const double smallest = u.value().dtype() == DType::kF64 ? std::numeric_limits<double>::epsilon()
                                                           : std::numeric_limits<float>::epsilon();
  const Tensor g = u.gradient();
  const Tensor share = u.in_type(ops::exp(ops::log(u.step()) * o.beta2_decay));
  const Dims shape = concrete(u.value().shape());
  const double root =
      std::sqrt(static_cast<double>(element_count(std::span<const int64_t>(shape))));
  const Tensor size = norm_of(u.value()) / root;
  const Tensor relative = ops::minimum(u.rate(), u.in_type(1.0 / ops::sqrt(u.step())));
  const Tensor rate = ops::maximum(size, Tensor::number(o.parameter_epsilon)) * relative;
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
  const Tensor update = g * ops::rsqrt(ops::maximum(variance, Tensor::number(smallest * smallest)));
  const Tensor excess = ops::maximum(norm_of(update) / (root * o.threshold), Tensor::number(1.0));
  return u.results(u.value() * (1.0 - u.rate() * decay) - update * (rate / excess), states);
}

Tensors adamw(const OptimizerOptions& o, double decay, const Tensor& rate, const Update& u) {
  const Tensor mean = mixed(u.state(0), u.gradient(), o.beta1),
               square = mixed(u.state(1), ops::square(u.gradient()), o.beta2);
  const Tensor root =
      ops::sqrt(square / u.in_type(correction(u.step(), o.beta2))) + Tensor::number(o.epsilon);
  const Tensor step = rate / u.in_type(correction(u.step(), o.beta1));
  return u.results(u.value() * (1.0 - rate * decay) - step * mean / root, {mean, square});
}

/// The matrix with the singular vectors of `x` and singular values near 1.
Tensor orthogonalized(const Tensor& x, int64_t rows, int64_t columns, int64_t iterations) {
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
  const bool tall = rows > columns;
  Tensor y = tall ? ops::transpose(x, {1, 0}) : x;
  y = y / ops::maximum(norm_of(y), Tensor::number(1e-7));
  for (int64_t i = 0; i < iterations; ++i) {
    const Tensor gram = ops::matmul(y, y, false, true);
    y = y * kA + ops::matmul(gram * kB + ops::matmul(gram, gram) * kC, y);
  }
  return tall ? ops::transpose(y, {1, 0}) : y;
}

/// Jordan et al., "Muon", 2024: momentum whose matrices are orthogonalized by the iteration of
/// Newton and Schulz. Axes after the first one count as one. Matrices are [inputs, outputs], as
/// those of `linear`; kernels of convolutions begin with their outputs.
Tensors muon(const OptimizerOptions& o, const std::string& name, double decay, const Update& u) {
  const Dims shape = concrete(u.value().shape());
  if (!is_orthogonalized(o, name, static_cast<int64_t>(shape.size())))
    return adamw(o, decay, u.rate() * (o.lr != 0 ? o.adamw_lr / o.lr : 0), u);
  const Tensor velocity = mixed(u.state(0), u.gradient(), o.momentum);
  const Tensor update = o.nesterov ? mixed(velocity, u.gradient(), o.momentum) : velocity;
  const int64_t rows = shape[0], columns = element_count(std::span<const int64_t>(shape)) / rows;
  const Tensor matrix = ops::reshape(update, Shape{Dim(rows), Dim(columns)});
  const Tensor direction =
      ops::reshape(orthogonalized(matrix, rows, columns, o.iterations), u.value().shape());
  const auto outputs = static_cast<double>(shape.size() == 2 ? columns : rows),
             inputs = static_cast<double>(shape.size() == 2 ? rows : columns);
  const double size = o.match_rms ? 0.2 * std::sqrt(std::max(outputs, inputs))
                                  : std::sqrt(std::max(1.0, outputs / inputs));
  return u.results(u.value() * (1.0 - u.rate() * decay) - direction * (u.rate() * size),
                   {velocity});
}

/// Defazio et al., "The Road Less Scheduled", 2024. The parameter is the point where gradients are
/// taken; the states are the sequence of plain steps, its weighted mean (the weights to evaluate),
/// the second moment, the sum of the weights and the largest rate so far.
Tensors schedule_free(const OptimizerOptions& o, double decay, const Update& u) {
  Tensor rate = ops::cast(u.rate(), DType::kF64);
  if (o.rising > 0)
    rate = rate * ops::minimum(u.step() / static_cast<double>(o.rising), Tensor::number(1.0));
  const Tensor largest = ops::maximum(ops::cast(u.state(4), DType::kF64), rate);
  const Tensor weight = ops::square(largest);
  const Tensor sum = ops::cast(u.state(3), DType::kF64) + weight;
  const Tensor share = u.in_type(weight / ops::maximum(sum, Tensor::number(1e-300)));
  const Tensor square = mixed(u.state(2), ops::square(u.gradient()), o.beta2);
  const Tensor root =
      ops::sqrt(square / u.in_type(correction(u.step(), o.beta2))) + Tensor::number(o.epsilon);
  const Tensor direction = u.gradient() / root + u.value() * decay;
  const Tensor plain = u.state(0) - u.in_type(rate) * direction;
  // The parameter moves towards the sequence as it was before this step.
  const Tensor value = u.value() + (u.state(0) - u.value()) * share +
                       direction * (u.in_type(rate) * ((1.0 - share) * o.beta1 - 1.0));
  const Tensor mean = value + (plain - value) * (1 - 1 / o.beta1);
  return u.results(value, {plain, mean, square, sum, largest});
}

}  // namespace

std::vector<StateSlot> composed_slots(const OptimizerOptions& o, const std::string& name,
                                      const Dims& shape) {
  const auto with_one = [&](size_t axis) {
    Dims out = shape;
    out[axis] = 1;
    return out;
  };
  switch (o.kind) {
    case OptimizerKind::kLion:
      return {{.name = "moment"}};
    case OptimizerKind::kAdafactor:
      if (shape.size() < 2) return {{.name = "variance"}};
      return {{.name = "rows", .shape = with_one(shape.size() - 1)},
              {.name = "columns", .shape = with_one(shape.size() - 2)}};
    case OptimizerKind::kMuon:
      if (is_orthogonalized(o, name, static_cast<int64_t>(shape.size())))
        return {{.name = "velocity"}};
      return {{.name = "moment1"}, {.name = "moment2"}};
    case OptimizerKind::kScheduleFree:
      return {{.name = "plain", .is_copy = true},
              {.name = kEvaluationSlot, .is_copy = true},
              {.name = "moment2"},
              {.name = "weight_sum", .shape = Dims{}},
              {.name = "largest_rate", .shape = Dims{}}};
    default:
      return {};
  }
}

Tensors composed_update(const OptimizerOptions& o, const std::string& name, double decay,
                        const Tensor& parameter, const Tensor& gradient, const Tensors& states,
                        const UpdateInputs& inputs) {
  const Update u(parameter, gradient, states, inputs);
  switch (o.kind) {
    case OptimizerKind::kLion:
      return lion(o, decay, u);
    case OptimizerKind::kAdafactor:
      return adafactor(o, decay, u);
    case OptimizerKind::kMuon:
      return muon(o, name, decay, u);
    case OptimizerKind::kScheduleFree:
      return schedule_free(o, decay, u);
    default:
      return {};
  }
}

}  // namespace paddle::optim
