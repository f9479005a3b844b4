// NaN and infinity on a device: results that have them, the operation that finds them, and updates
// that are skipped because of them.

#include <cmath>
#include <limits>

#include "conformance/devices.h"
#include "inspect/compare.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/optimizer.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "runtime/compile.h"
#include "tensor/device_functions.h"

namespace paddle::conformance {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// `all_finite` of two tensors of a dtype, with one element that is not finite at several places.
std::string check_search(Device device, DType dtype, int64_t size) {
  const auto function = std::make_shared<ir::Function>("check");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    Tensors operands;
    for (const char* name : {"x", "y"})
      operands.push_back(tracer.input({ir::PortKind::kValue, name}, {dtype, {Dim(size)}}));
    tracer.output({ir::PortKind::kValue, "finite"}, ops::all_finite(operands));
  }
  const auto executable = runtime::compile(function, {.target = {.device = device}});
  const auto finds = [&](size_t operand, int64_t at, float value) {
    std::vector<Array> inputs;
    for (size_t i = 0; i < 2; ++i) {
      Array x = Array::empty(DType::kF32, {size});
      for (int64_t e = 0; e < size; ++e) x.data<float>()[e] = static_cast<float>(e % 7) - 3;
      if (i == operand) x.data<float>()[at] = value;
      inputs.push_back(x.cast(dtype));
    }
    return executable->run(inputs).at(0).number() == 0;
  };
  if (finds(0, 0, 1)) return str("all_finite is false for finite numbers of ", text(dtype));
  for (const float value : {kNan, kInfinity, -kInfinity})
    for (const size_t operand : {0, 1})
      for (const int64_t at : {int64_t{0}, size / 2, size - 1})
        if (!finds(operand, at, value))
          return str("all_finite is true, with ", value, " in element ", at, " of ", text(dtype),
                     "[", size, "], tensor ", operand);
  return "";
}

struct Function {
  const char* name;
  TensorFn call;
};

/// Functions that make NaN and infinity, and that pass them on.
std::vector<Function> functions() {
  return {{"add", [](const Tensors& x) { return Tensors{x[0] + x[1]}; }},
          {"subtract", [](const Tensors& x) { return Tensors{x[0] - x[0]}; }},
          {"multiply", [](const Tensors& x) { return Tensors{x[0] * x[1]}; }},
          {"divide", [](const Tensors& x) { return Tensors{x[0] / x[1]}; }},
          {"log", [](const Tensors& x) { return Tensors{ops::log(x[0])}; }},
          {"sqrt", [](const Tensors& x) { return Tensors{ops::sqrt(x[0])}; }},
          {"exp", [](const Tensors& x) { return Tensors{ops::exp(x[0])}; }},
          {"relu", [](const Tensors& x) { return Tensors{ops::relu(x[0])}; }},
          {"tanh", [](const Tensors& x) { return Tensors{ops::tanh(x[0])}; }},
          {"maximum", [](const Tensors& x) { return Tensors{ops::maximum(x[0], x[1])}; }},
          {"sum", [](const Tensors& x) { return Tensors{ops::sum(x[0])}; }},
          {"max", [](const Tensors& x) { return Tensors{ops::max(x[0])}; }},
          {"softmax", [](const Tensors& x) { return Tensors{ops::softmax(x[0])}; }},
          {"matmul", [](const Tensors& x) {
             return Tensors{ops::matmul(ops::reshape(x[0], {2, 4}), ops::reshape(x[1], {4, 2}))};
           }}};
}

/// The results of these on the device against those of the CPU: NaN where that has NaN.
std::string check_results(Device device) {
  const std::vector<Array> inputs = {
      Array::from<float>({1, -1, 0, 3e38F, kInfinity, -kInfinity, kNan, -0.0F}, {8}),
      Array::from<float>({2, 0, 0, 3e38F, -kInfinity, 0, 1, -1}, {8})};
  for (const inspect::Mode mode : {inspect::Mode::kEager, inspect::Mode::kCompiled})
    for (const Function& each : functions()) {
      const auto found = inspect::run(mode, each.call, inputs, device);
      const auto expected = inspect::run(mode, each.call, inputs);
      const std::string bad = inspect::difference(*found[0], *expected[0], {2e-5, 1e-6});
      if (!bad.empty()) return str(each.name, ", ", inspect::text(mode), ": ", bad);
    }
  return "";
}

/// A parameter that keeps its value where the gradient is not finite, and is updated afterwards.
std::string check_skipped_update(Device device) {
  const auto function = std::make_shared<ir::Function>("check");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const TensorType type{DType::kF32, {Dim(5)}};
    const Tensor gradient = tracer.input({ir::PortKind::kValue, "g"}, type);
    const Tensor parameter = tracer.input({ir::PortKind::kState, "p"}, type);
    tracer.output({ir::PortKind::kState, "p"},
                  ops::where(ops::all_finite({gradient}), parameter - gradient, parameter));
  }
  const auto executable = runtime::compile(function, {.target = {.device = device}});
  std::vector<Array> inputs = {Array(), Array::zeros(DType::kF32, {5}).to(device)};
  float expected = 0;
  for (const float gradient : {1.0F, kNan, 2.0F, -kInfinity, kInfinity, 4.0F}) {
    inputs[0] = Array::from<float>({gradient, gradient, 1, gradient, gradient}, {5});
    executable->run(inputs);
    if (std::isfinite(gradient)) expected -= gradient;
    synchronize(device);
    const float found = inspect::own_copy(inputs[1].on_host()).data<float>()[0];
    if (found != expected)
      return str("a parameter is ", found, " after a gradient of ", gradient, ", expected ",
                 expected);
  }
  return "";
}

}  // namespace

std::string check_device_nonfinite(const std::string& name, const Extent& extent) {
  const Device device = parse_device(name);
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16})
    for (const int64_t size : {1, 7, extent.quick ? 4097 : 1000003})
      if (std::string bad = check_search(device, dtype, size); !bad.empty()) return bad;
  std::string bad = check_results(device);
  return bad.empty() ? check_skipped_update(device) : bad;
}

}  // namespace paddle::conformance
