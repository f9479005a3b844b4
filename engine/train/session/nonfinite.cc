#include "train/session/nonfinite.h"

#include <cmath>

namespace paddle::train {
namespace {

template <class T>
NonFiniteCount count_in(const T* data, int64_t size) {
  NonFiniteCount out;
  out.elements = size;
  for (int64_t i = 0; i < size; ++i) {
    if (std::isnan(data[i]))
      ++out.nan;
    else if (std::isinf(data[i]))
      ++out.infinite;
  }
  return out;
}

}  // namespace

NonFiniteCount count_nonfinite(const Array& array) {
  if (!is_float(array.dtype) && !is_complex(array.dtype)) return {.elements = array.size()};
  const Array whole = array.on_host().contiguous();
  switch (whole.dtype) {
    case DType::kF64:
      return count_in(whole.data<double>(), whole.size());
    case DType::kC64:
      return count_in(static_cast<const float*>(whole.raw()), 2 * whole.size());
    case DType::kC128:
      return count_in(static_cast<const double*>(whole.raw()), 2 * whole.size());
    default: {
      const Array wide = whole.cast(DType::kF32);
      return count_in(wide.data<float>(), wide.size());
    }
  }
}

}  // namespace paddle::train
