#include "tune/timed_kernel.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace paddle::tune {

TimedKernel::TimedKernel(std::unique_ptr<Kernel> kernel, void* const* operands,
                         void* const* results)
    : kernel_(std::move(kernel)), operands_(operands), results_(results) {
  if (!kernel_) return;
  scratch_ = Storage::allocate(std::max<size_t>(64, kernel_->scratch_bytes()));
  run();
  const auto begin = std::chrono::steady_clock::now();
  run();
  repeats_ = std::clamp(static_cast<int>(1e-3 / std::max(1e-7, seconds_since(begin))), 1, 1000);
}

double TimedKernel::block() {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats_; ++i) run();
  return seconds_since(begin) / repeats_;
}

Comparison compare_kernels(TimedKernel& base, TimedKernel& candidate,
                           const std::function<bool()>& stop) {
  return compare([&] { return base.block(); }, [&] { return candidate.block(); },
                 {.min_rounds = 6, .max_rounds = 30, .worth = 0.03}, stop);
}

}  // namespace paddle::tune
