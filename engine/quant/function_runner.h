#pragma once
// Runs a function of a model's inputs, and measures what quantization changed.

#include <functional>
#include <memory>
#include <vector>

#include "compiler/passes/passes.h"
#include "ir/module.h"
#include "runtime/executable.h"

namespace paddle::quant {

using WeightSource = std::function<Array(const std::string&)>;

/// Computes operations on constants for compiler passes.
passes::Evaluate evaluator();

/// Makes parameters constants, as they are where a model is deployed: kernels rearrange them, and
/// integers of 4 bits are unpacked.
void bind_parameters(ir::Function& function, const WeightSource& weight);

/// The arguments of a call: the inputs, and the values of parameters and states by name.
std::vector<Array> arguments_of(const ir::Function& function, const std::vector<Array>& inputs,
                                const WeightSource& weight);

/// Binds the function's parameters. States start with their initial values in every call.
class FunctionRunner {
 public:
  FunctionRunner(std::shared_ptr<ir::Function> function, WeightSource weight);
  /// All results that are values, in order; valid until the next call.
  std::vector<Array> run(const std::vector<Array>& inputs);

 private:
  std::shared_ptr<ir::Function> function_;
  WeightSource weight_;
  std::vector<size_t> values_;
  std::unique_ptr<runtime::Executable> executable_;
};

/// Signal-to-quantization-noise ratio, summed over arrays.
class Sqnr {
 public:
  void add(const Array& reference, const Array& found);
  /// 200 where there is no noise.
  double decibels() const;

 private:
  double signal_ = 0, noise_ = 0;
};

/// Median times in milliseconds of two calls that alternate, so that both meet the same machine.
struct PairedTimes {
  double first = 0, second = 0;
};
PairedTimes time_alternately(const std::function<void()>& first,
                             const std::function<void()>& second, double seconds);

}  // namespace paddle::quant
