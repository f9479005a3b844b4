// Numbers that become sizes of tensors.

#include "kernels/indexing/run_time_sizes.h"

#include "ops/core/kernel.h"

namespace paddle {

Dims checked_sizes(const int64_t* values, int64_t count) {
  constexpr int64_t kMaxElements = int64_t{1} << 56;
  Dims sizes;
  int64_t elements = 1;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t size = values[i];
    if (size < 0) fail(ErrorCode::kData, "a size is negative: ", size);
    if (size > 0 && (__builtin_mul_overflow(elements, size, &elements) || elements > kMaxElements))
      fail(ErrorCode::kData, "a shape is too large: its size in axis ", i, " is ", size);
    sizes.push_back(size);
  }
  sizes.push_back(0);
  return sizes;
}

namespace cpu {

std::unique_ptr<Kernel> prepare_run_time_sizes(const KernelRequest& request) {
  const int64_t count = request.operands[0].size();
  return make_kernel([=](const RunContext& context, void* const* operands, void* const*) {
    context.allocator->allocate(0, checked_sizes(static_cast<const int64_t*>(operands[0]), count));
  });
}

}  // namespace cpu
}  // namespace paddle
