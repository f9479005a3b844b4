#pragma once
// Kernels whose result depends only on the places of its elements: ranges and random numbers.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>

#include "base/parallel.h"
#include "kernels/common/convert.h"
#include "ops/core/kernel.h"

namespace paddle::cpu {

/// Elements of one call of a block's function.
constexpr int64_t kFillBlock = 512;

/// Fills a tensor block by block. `f(operands)`, or `f(operands, scratch)` with as many bytes of
/// scratch, returns a function that may be called from several threads: `fill(first, n, C* out)`
/// for n <= kFillBlock elements from `first` on, computed in C.
template <class C, class F>
std::unique_ptr<Kernel> fill_by_block(const Layout& result, F f, size_t scratch = 0) {
  const bool direct = result.dtype == dtype_of<C>();
  const ConvertFn store = convert_fn(dtype_of<C>(), result.dtype);
  const int64_t size = result.size(), item = item_size(result.dtype);
  const auto start = [f](const RunContext& context, void* const* operands) {
    if constexpr (std::is_invocable_v<F, void* const*, std::byte*>)
      return f(operands, context.scratch);
    else
      return f(operands);
  };
  const auto run = [=](const RunContext& context, void* const* operands, void* const* results) {
    const auto fill = start(context, operands);
    parallel_for(size, 4096, [&](int64_t begin, int64_t end) {
      C values[kFillBlock];
      for (int64_t first = begin; first < end; first += kFillBlock) {
        const int64_t n = std::min(kFillBlock, end - first);
        if (direct) {
          fill(first, n, static_cast<C*>(results[0]) + first);
          continue;
        }
        fill(first, n, values);
        store(values, 1, static_cast<std::byte*>(results[0]) + first * item, n);
      }
    });
  };
  return make_kernel(run, scratch);
}

}  // namespace paddle::cpu
