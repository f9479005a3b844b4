#pragma once
// Kernels that run on their own, to compare their speed.

#include <memory>
#include <string>

#include "ops/core/kernel.h"
#include "tune/comparison.h"

namespace paddle::tune {

/// A kernel with its scratch memory.
class TimedKernel {
 public:
  /// `kernel` may be null, and is then not usable. It runs twice; the arrays must stay.
  TimedKernel(std::unique_ptr<Kernel> kernel, void* const* operands, void* const* results);

  bool usable() const { return kernel_ != nullptr; }
  std::string implementation() const { return kernel_->implementation(); }
  /// Seconds of a run, the mean of as many as take about a millisecond.
  double block();

 private:
  void run() { kernel_->run({scratch_->data(), nullptr}, operands_, results_); }

  std::unique_ptr<Kernel> kernel_;
  std::shared_ptr<Storage> scratch_;
  void* const* operands_;
  void* const* results_;
  int repeats_ = 1;
};

/// A comparison of usable kernels, in which gains below 3% do not count.
Comparison compare_kernels(TimedKernel& base, TimedKernel& candidate,
                           const std::function<bool()>& stop);

}  // namespace paddle::tune
