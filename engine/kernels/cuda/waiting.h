#pragma once
// Kernels that wait for the device while they run, because sizes of their results depend on values.

#include <memory>
#include <string>

#include "ops/core/kernel.h"

namespace paddle::cuda {

/// Waits for values that the queued work stores, and throws the errors that it recorded.
void read_back(const RunContext& context, Device device, void* to, const void* from, size_t bytes);

template <class Run>
class WaitingKernel final : public Kernel {
 public:
  WaitingKernel(Run run, size_t scratch, std::string name)
      : run_(std::move(run)), scratch_(scratch), name_(std::move(name)) {}
  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    run_(context, operands, results);
  }
  size_t scratch_bytes() const override { return scratch_; }
  bool capturable() const override { return false; }
  std::string implementation() const override { return name_; }

 private:
  Run run_;
  size_t scratch_;
  std::string name_;
};
template <class Run>
std::unique_ptr<Kernel> waiting_kernel(Run run, size_t scratch, std::string name) {
  return std::make_unique<WaitingKernel<Run>>(std::move(run), scratch, std::move(name));
}

}  // namespace paddle::cuda
