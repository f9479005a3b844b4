// Row-major positions of indices in a shape, with a check of their range.

#include "ops/core/kernel.h"
#include "ops/generated/sparse.h"
#include "tensor/dim.h"

namespace paddle::cpu {

std::unique_ptr<Kernel> prepare_sparse_linear_index(const KernelRequest& request) {
  Dims sizes;
  for (const Dim& size : SparseLinearIndexAttrs(request.attrs).shape) sizes.push_back(size.value());
  element_count(std::span<const int64_t>(sizes));  // rejects what 64 bits cannot count
  const int64_t count = request.results[0].size();
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    const int64_t* const indices = static_cast<const int64_t*>(operands[0]);
    int64_t* const out = static_cast<int64_t*>(results[0]);
    for (int64_t i = 0; i < count; ++i) {
      int64_t position = 0;
      for (size_t axis = 0; axis < sizes.size(); ++axis) {
        const int64_t index = indices[static_cast<int64_t>(axis) * count + i];
        if (index < 0 || index >= sizes[axis])
          fail(ErrorCode::kData, "the sparse index ", index, " is out of range for axis ", axis,
               " of size ", sizes[axis]);
        position = position * sizes[axis] + index;
      }
      out[i] = position;
    }
  });
}

}  // namespace paddle::cpu
