#include "kernels/common/strided_window.h"

#include <algorithm>

namespace paddle::cpu {

StridedWindow strided_window(const Dims& shape, const StridedSliceScatterAttrs& attrs) {
  StridedWindow out{shape, contiguous_strides(shape), 0};
  for (size_t i = 0; i < attrs.axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(
        attrs.axes[i] < 0 ? attrs.axes[i] + static_cast<int64_t>(shape.size()) : attrs.axes[i]);
    const int64_t size = shape[axis], stride = attrs.strides[i];
    // Python's bounds; with a negative stride, -1 is the position before the first element.
    const auto bound = [&](int64_t at) {
      if (at < 0) at += size;
      return stride > 0 ? std::clamp<int64_t>(at, 0, size) : std::clamp<int64_t>(at, -1, size - 1);
    };
    const int64_t first = bound(attrs.starts[i].value()), last = bound(attrs.ends[i].value());
    const int64_t span = stride > 0 ? last - first : first - last;
    const int64_t step = stride > 0 ? stride : -stride;
    out.shape[axis] = std::max<int64_t>(0, (span + step - 1) / step);
    if (out.shape[axis] > 0) out.offset += first * out.strides[axis];
    out.strides[axis] *= stride;
  }
  return out;
}

}  // namespace paddle::cpu
