// tril and triu: each row of a matrix is a run of x and a run of zeros.

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "ops/core/kernel.h"
#include "ops/generated/shape.h"

namespace paddle::cpu {

std::unique_ptr<Kernel> prepare_tril(const KernelRequest& request) {
  const Layout& x = request.operands[0];
  const size_t rank = x.shape.size();
  if (rank < 2) return nullptr;
  const bool lower = request.op.name() == "tril";
  const int64_t diagonal = TrilAttrs(request.attrs).diagonal;
  const int64_t rows = x.shape[rank - 2], columns = x.shape[rank - 1], item = item_size(x.dtype);
  const int64_t total = columns == 0 ? 0 : x.size() / columns;
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    const auto* const in = static_cast<const std::byte*>(operands[0]);
    auto* const out = static_cast<std::byte*>(results[0]);
    const auto fill = [&](int64_t row, int64_t first, int64_t last, bool kept) {
      const int64_t at = (row * columns + first) * item;
      const auto bytes = static_cast<size_t>((last - first) * item);
      if (!kept)
        std::memset(out + at, 0, bytes);
      else if (in != out)
        std::memcpy(out + at, in + at, bytes);
    };
    parallel_for(total, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, columns)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     // The first column that is zero for tril, or kept for triu; a diagonal may
                     // be any number.
                     const int64_t i = row % rows + (lower ? 1 : 0);
                     const int64_t split = diagonal < -i            ? 0
                                           : diagonal > columns - i ? columns
                                                                    : i + diagonal;
                     fill(row, 0, split, lower);
                     fill(row, split, columns, !lower);
                   }
                 });
  });
}

}  // namespace paddle::cpu
