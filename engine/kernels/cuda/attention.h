#pragma once
// Attention: what its two forms share, and the one without scores in memory.

#include <array>

#include "kernels/cuda/device_types.h"
#include "ops/core/kernel.h"

namespace paddle::cuda {

/// A mask that broadcasts to [batch, heads, queries, keys].
struct MaskLayout {
  const char* type = "bool";
  std::array<int64_t, 4> strides{};
  bool fits = true;

  MaskLayout(const Layout& mask, const Layout& q, const Layout& k);
};

/// Whether q, k and v, operands from `first` on, have one float type, four axes and equal heads.
bool are_attention_operands(std::span<const Layout> operands, size_t first);

/// Attention whose blocks keep scores in shared memory: for types that are computed in float, and
/// heads of at most 128 elements. Null for others.
std::unique_ptr<Kernel> prepare_fused_attention(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_fused_attention_grad(const KernelRequest& request);

}  // namespace paddle::cuda
