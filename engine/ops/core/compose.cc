#include "ops/core/compose.h"

#include "ops/generated/shape.h"

namespace paddle::rules {

Tensor slice_axis(const Tensor& x, int64_t axis, const Dim& start, const Dim& end, int64_t stride) {
  return ops::strided_slice(x, {axis}, {start}, {end}, {stride});
}

Tensor flat(const Tensor& x) { return ops::reshape(x, Shape{-1}); }

}  // namespace paddle::rules
