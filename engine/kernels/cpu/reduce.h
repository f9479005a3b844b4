#pragma once
// The frame of reductions over any axes of a contiguous tensor. The order of the additions depends
// on the shape alone, never on the number of threads.

#include <memory>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/reduce_loops.h"
#include "ops/kernel.h"

namespace paddle::cpu {

enum class ReduceForm : uint8_t { kPlain, kMean, kLogSumExp };

/// `axes` count from 0; empty means all. The result is contiguous, with or without the axes.
std::unique_ptr<Kernel> reduce(const Layout& x, const std::vector<int64_t>& axes,
                               Reduction reduction, ReduceForm form, DType result_type);

}  // namespace paddle::cpu
