#pragma once
// The options of a call of `unique` or `unique_consecutive`.

#include "kernels/common/rows.h"
#include "ops/core/kernel.h"

namespace paddle::cpu {

struct UniqueOptions {
  bool consecutive = false;  ///< only neighbors are compared
  bool with_index = false, with_inverse = false, with_counts = false;
  bool is_int64 = true;  ///< places and counts; else int32
  Dims shape;            ///< of x, flat where no axis is given
  size_t axis = 0;       ///< of `shape`: slices along it are compared
  Rows rows;             ///< of `shape` along the axis
};
UniqueOptions unique_options(const KernelRequest& request);

}  // namespace paddle::cpu
