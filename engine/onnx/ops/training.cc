// Operators of ai.onnx.preview.training: optimizers, and gradients of earlier nodes.

#include "autograd/autograd.h"
#include "onnx/graph/evaluator.h"
#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/math.h"

namespace paddle::onnx {
namespace {

/// Number of tensors that a node updates; each has `parts` inputs after rate and step.
size_t updated(const NodeCall& c, size_t parts) {
  c.check(c.input_count() > 2 && (c.input_count() - 2) % parts == 0,
          "the number of inputs is wrong");
  return (c.input_count() - 2) / parts;
}

Tensor regularized(const NodeCall& c, const Tensor& x, const Tensor& gradient) {
  return x * c.float_attr("norm_coefficient", 0) + gradient;
}

Values adagrad(NodeCall& c) {
  const size_t n = updated(c, 3);
  const Tensor step = ops::cast(c.tensor(1), c.tensor(0).dtype());
  const Tensor rate = c.tensor(0) / (step * c.float_attr("decay_factor", 0) + 1.0);
  Values xs, hs;
  for (size_t i = 0; i < n; ++i) {
    const Tensor& x = c.tensor(2 + i);
    const Tensor g = regularized(c, x, c.tensor(2 + n + i));
    const Tensor h = c.tensor(2 + 2 * n + i) + g * g;
    xs.emplace_back(x - rate * g / (ops::sqrt(h) + c.float_attr("epsilon", 1e-6)));
    hs.emplace_back(h);
  }
  xs.insert(xs.end(), hs.begin(), hs.end());
  return xs;
}

Values adam(NodeCall& c) {
  const size_t n = updated(c, 4);
  const double alpha = c.float_attr("alpha", 0.9), beta = c.float_attr("beta", 0.999);
  const Tensor step = ops::cast(c.tensor(1), DType::kF64);
  const auto remaining = [&](double decay) {
    return 1.0 - ops::pow(scalar(decay, DType::kF64), step);
  };
  const Tensor corrected = ops::sqrt(remaining(beta)) / remaining(alpha);
  const Tensor factor = ops::where(ops::greater_than(step, scalar(0, DType::kF64)), corrected,
                                   scalar(1, DType::kF64));
  Values xs, vs, hs;
  for (size_t i = 0; i < n; ++i) {
    const Tensor& x = c.tensor(2 + i);
    const Tensor g = regularized(c, x, c.tensor(2 + n + i));
    const Tensor v = c.tensor(2 + 2 * n + i) * alpha + g * (1 - alpha);
    const Tensor h = c.tensor(2 + 3 * n + i) * beta + g * g * (1 - beta);
    const Tensor rate = c.tensor(0) * ops::cast(factor, c.tensor(0).dtype());
    const Tensor moved = x - rate * v / (ops::sqrt(h) + c.float_attr("epsilon", 1e-6));
    xs.emplace_back(moved * (1 - c.float_attr("norm_coefficient_post", 0)));
    vs.emplace_back(v);
    hs.emplace_back(h);
  }
  xs.insert(xs.end(), vs.begin(), vs.end());
  xs.insert(xs.end(), hs.begin(), hs.end());
  return xs;
}

Values momentum(NodeCall& c) {
  const size_t n = updated(c, 3);
  const double alpha = c.float_attr("alpha", 0), beta = c.float_attr("beta", 1);
  const Tensor& rate = c.tensor(0);
  const Tensor step = ops::cast(c.tensor(1), DType::kI64);
  const Tensor share = ops::where(ops::greater_than(step, int_scalar(0)),
                                  scalar(beta, rate.dtype()), scalar(1, rate.dtype()));
  const bool nesterov = c.string_attr("mode", "standard") == "nesterov";
  Values xs, vs;
  for (size_t i = 0; i < n; ++i) {
    const Tensor& x = c.tensor(2 + i);
    const Tensor g = regularized(c, x, c.tensor(2 + n + i));
    const Tensor v = c.tensor(2 + 2 * n + i) * alpha + share * g;
    xs.emplace_back(x - rate * (nesterov ? g + v * alpha : v));
    vs.emplace_back(v);
  }
  xs.insert(xs.end(), vs.begin(), vs.end());
  return xs;
}

/// Gradients of value `y` with respect to the values `xs`.
Values gradient(NodeCall& c) {
  c.check(current_interpreter().traces(), "gradients need a model that can be traced as a whole");
  const auto named = [&](const std::string& name) {
    const Value* v = c.scope().find(name);
    c.check(v != nullptr, "no earlier node produces '", name, "'");
    return v->tensor();
  };
  Tensors inputs;
  for (const std::string& x : c.strings_attr("xs")) inputs.push_back(named(x));
  const Tensor y = named(c.string_attr("y", ""));
  const Tensors grads = autograd::grad({y}, inputs);
  Values out;
  for (size_t i = 0; i < grads.size(); ++i)
    out.emplace_back(grads[i] ? grads[i] : ops::full(inputs[i].shape(), 0.0, inputs[i].dtype()));
  return out;
}

}  // namespace

OperatorTable training_operators() {
  static constexpr Operator operators[] = {
      {"Adagrad", 1, adagrad},
      {"Adam", 1, adam},
      {"Momentum", 1, momentum},
      {"Gradient", 1, gradient},
  };
  return operators;
}

}  // namespace paddle::onnx
