#pragma once
// Kernels without those that plug-ins have added: the reference for these.

namespace paddle {

/// While it lives, kernels prepared on this thread are the engine's.
class EngineKernelScope {
 public:
  EngineKernelScope();
  ~EngineKernelScope();
  EngineKernelScope(const EngineKernelScope&) = delete;
  EngineKernelScope& operator=(const EngineKernelScope&) = delete;

 private:
  bool before_;
};

}  // namespace paddle
