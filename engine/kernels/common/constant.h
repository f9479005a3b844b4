#pragma once
// Constant operands as arrays.

#include "ops/core/op.h"

namespace paddle::cpu {

/// A view of a constant operand, which is contiguous; unaligned constants are copied to aligned
/// memory when read.
inline Array constant_of(const Layout& layout) {
  Array view;
  view.dtype = layout.dtype;
  view.shape = layout.shape;
  view.strides = contiguous_strides(layout.shape);
  const auto bytes = static_cast<size_t>(storage_bytes(layout.dtype, layout.size()));
  const auto unit = static_cast<uintptr_t>(item_size(layout.dtype));
  view.storage = reinterpret_cast<uintptr_t>(layout.constant) % unit == 0
                     ? Storage::borrow(const_cast<void*>(layout.constant), bytes, nullptr)
                     : Storage::borrow_unaligned(layout.constant, bytes, nullptr);
  return view;
}

}  // namespace paddle::cpu
