#include "quant/function_runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle::quant {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(const std::function<void()>& call) {
  const auto begun = Clock::now();
  call();
  return std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
}

double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

passes::Evaluate evaluator() {
  return [](const Op& op, const Attrs& attrs, const std::vector<const Array*>& operands,
            const std::vector<TensorType>& results) {
    return runtime::execute(op, attrs, operands, results);
  };
}

void bind_parameters(ir::Function& function, const WeightSource& weight) {
  for (size_t i = function.inputs.size(); i-- > 0;)
    if (function.inputs[i].kind == ir::PortKind::kParameter)
      function.bind_input(i, weight(function.inputs[i].name).contiguous());
}

FunctionRunner::FunctionRunner(std::shared_ptr<ir::Function> function, WeightSource weight)
    : function_(std::move(function)), weight_(std::move(weight)) {
  bind_parameters(*function_, weight_);
  for (size_t i = 0; i < function_->outputs.size(); ++i)
    if (function_->outputs[i].kind == ir::PortKind::kValue) values_.push_back(i);
  executable_ = runtime::compile(function_, {});
}

std::vector<Array> arguments_of(const ir::Function& function, const std::vector<Array>& inputs,
                                const WeightSource& weight) {
  std::vector<Array> out;
  size_t next = 0;
  for (const ir::Port& port : function.inputs) {
    if (port.kind == ir::PortKind::kValue)
      out.push_back(inputs.at(next++).contiguous());
    else if (port.kind == ir::PortKind::kRandom)
      out.push_back(Array::zeros(DType::kU64, {2}));
    else
      out.push_back(runtime::copied(weight(port.name)));
  }
  return out;
}

std::vector<Array> FunctionRunner::run(const std::vector<Array>& inputs) {
  const std::vector<Array>& results = executable_->run(arguments_of(*function_, inputs, weight_));
  std::vector<Array> out;
  for (const size_t i : values_) out.push_back(results[i]);
  return out;
}

void Sqnr::add(const Array& reference, const Array& found) {
  if (reference.shape != found.shape || !is_float(reference.dtype)) return;
  const Array a = reference.cast(DType::kF32).contiguous(),
              b = found.cast(DType::kF32).contiguous();
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = a.data<float>()[i], difference = x - b.data<float>()[i];
    if (!std::isfinite(x) || !std::isfinite(difference)) continue;
    signal_ += x * x;
    noise_ += difference * difference;
  }
}

double Sqnr::decibels() const {
  if (noise_ == 0) return signal_ == 0 ? 0 : 200;
  return 10 * std::log10(std::max(signal_, 1e-300) / noise_);
}

PairedTimes time_alternately(const std::function<void()>& first,
                             const std::function<void()>& second, double seconds) {
  constexpr size_t kMin = 15, kMax = 200;
  for (int i = 0; i < 3; ++i) {
    first();
    second();
  }
  std::vector<double> a, b;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (a.size() < kMin || (a.size() < kMax && Clock::now() < end)) {
    a.push_back(milliseconds(first));
    b.push_back(milliseconds(second));
  }
  return {median(a), median(b)};
}

}  // namespace paddle::quant
