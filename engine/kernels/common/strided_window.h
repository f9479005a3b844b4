#pragma once
// The elements that strided_slice takes and strided_slice_scatter writes.

#include "ops/generated/shape.h"
#include "tensor/tensor.h"

namespace paddle::cpu {

/// A window of a contiguous tensor.
struct StridedWindow {
  Dims shape, strides;
  int64_t offset = 0;  ///< of its first element
};

/// The window of a tensor of this shape that the axes, starts, ends and strides describe.
StridedWindow strided_window(const Dims& shape, const StridedSliceScatterAttrs& attrs);

}  // namespace paddle::cpu
