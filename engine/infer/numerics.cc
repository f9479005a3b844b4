#include "infer/numerics.h"

#include <algorithm>
#include <cmath>

namespace paddle::infer {
namespace {

template <class T>
Numerics count_in(const T* data, int64_t size) {
  Numerics out;
  out.elements = size;
  for (int64_t i = 0; i < size; ++i) {
    const auto value = static_cast<double>(data[i]);
    if (std::isnan(value))
      ++out.nan;
    else if (std::isinf(value))
      ++out.infinite;
    else
      out.largest = std::max(out.largest, std::abs(value));
    out.zeros += value == 0;
  }
  return out;
}

}  // namespace

Numerics count_numerics(const Array& array) {
  const Array whole = array.on_host().contiguous();
  switch (whole.dtype) {
    case DType::kF64:
      return count_in(whole.data<double>(), whole.size());
    case DType::kF32:
      return count_in(whole.data<float>(), whole.size());
    case DType::kC64:
      return count_in(static_cast<const float*>(whole.raw()), 2 * whole.size());
    case DType::kC128:
      return count_in(static_cast<const double*>(whole.raw()), 2 * whole.size());
    default: {
      const Array wide = whole.cast(is_float(whole.dtype) ? DType::kF32 : DType::kF64);
      return is_float(whole.dtype) ? count_in(wide.data<float>(), wide.size())
                                   : count_in(wide.data<double>(), wide.size());
    }
  }
}

}  // namespace paddle::infer
