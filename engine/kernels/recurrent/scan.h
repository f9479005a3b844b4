#pragma once
// The steps of a recurrent layer. The GEMM with the hidden state's weight is left to the
// implementation; the cell's arithmetic is shared.

#include <memory>
#include <string>

#include "ops/core/kernel.h"

namespace paddle::cpu {

enum class Cell : uint8_t { kLstm, kGru, kTanh, kRelu };

struct ScanShape {
  Cell cell;
  bool reverse;
  int64_t batch, steps, hidden;
  int64_t gates;  ///< number of vectors of `hidden` elements that a step computes
  int64_t saved;  ///< number of those that it saves for the gradient

  /// From attributes and the dims of the outputs, [batch, steps, hidden].
  static ScanShape of(const std::string& cell, bool reverse, const Dims& out);
  int64_t width() const { return gates * hidden; }
  /// Position in the sequence of the i-th step.
  int64_t step(int64_t i) const { return reverse ? steps - 1 - i : i; }
};

/// The GEMMs of a scan whose weight is [gates * hidden, hidden], in f32 or f64.
template <class T>
class ScanGemm {
 public:
  virtual ~ScanGemm() = default;
  virtual size_t scratch_bytes() const { return 0; }
  virtual std::string name() const { return "cpu"; }
  /// Called once per run, before the steps, forward or backward.
  virtual void begin(const RunContext&, const T* /*weight*/) const {}
  /// hidden_gates = h weight^T, [batch, gates * hidden]; rows of h are `hidden` apart in the first
  /// step and steps * hidden in the others.
  virtual void forward(const RunContext& context, const T* weight, const T* h, bool first,
                       T* hidden_gates) const = 0;
  /// out = g weight, [batch, hidden]; rows of g are steps * gates * hidden apart.
  virtual void backward(const RunContext& context, const T* weight, const T* g, T* out) const = 0;
};

/// Kernels of recurrent_scan and recurrent_scan_grad.
template <class T>
std::unique_ptr<Kernel> scan_kernel(const ScanShape& shape, std::unique_ptr<ScanGemm<T>> gemm);
template <class T>
std::unique_ptr<Kernel> scan_grad_kernel(const ScanShape& shape, std::unique_ptr<ScanGemm<T>> gemm);

}  // namespace paddle::cpu
