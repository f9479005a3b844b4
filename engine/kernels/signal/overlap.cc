// Sums of overlapping frames.

#include <algorithm>

#include "base/parallel.h"
#include "ops/core/kernel.h"
#include "ops/generated/signal.h"
#include "tensor/complex.h"

namespace paddle::cpu {

std::unique_ptr<Kernel> prepare_overlap_frames(const KernelRequest& request) {
  const Dims& shape = request.operands[0].shape;
  const int64_t length = shape.back(), number = shape[shape.size() - 2];
  const int64_t size = request.results[0].shape.back();
  const int64_t rows = size == 0 ? 0 : request.results[0].size() / size;
  const int64_t hop = OverlapFramesAttrs(request.attrs).hop_length;
  const DType dtype = request.operands[0].dtype;
  const auto make = [&](auto tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, size));
      parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* const in = static_cast<const T*>(operands[0]) + row * number * length;
          T* const out = static_cast<T*>(results[0]) + row * size;
          std::fill_n(out, size, T(0));
          for (int64_t frame = 0; frame < number; ++frame)
            for (int64_t i = 0; i < length; ++i)
              out[frame * hop + i] = static_cast<T>(out[frame * hop + i] + in[frame * length + i]);
        }
      });
    });
  };
  if (is_float(dtype)) return visit_float(dtype, make);
  if (dtype == DType::kI32) return make(TypeTag<int32_t>{});
  if (dtype == DType::kI64) return make(TypeTag<int64_t>{});
  if (is_complex(dtype)) return visit_complex(dtype, make);
  return nullptr;
}

}  // namespace paddle::cpu
