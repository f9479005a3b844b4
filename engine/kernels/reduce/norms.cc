// Euclidean norms of rows.

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "kernels/reduce/reduce_simd.h"
#include "ops/core/kernel.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kChunk = 65536;  // elements of one partial sum

template <class T>
std::unique_ptr<Kernel> row_norms(int64_t rows, int64_t n) {
  const int64_t chunks = std::max<int64_t>(1, (n + kChunk - 1) / kChunk);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const RowLoops<T>& loops = row_loops<T>();
        auto* const sums = reinterpret_cast<double*>(context.scratch);
        auto* const out = static_cast<T*>(results[0]);
        parallel_for(
            rows * chunks, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, std::min(n, kChunk))),
            [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                const int64_t first = i % chunks * kChunk;
                const T* const x = static_cast<const T*>(operands[0]) + i / chunks * n + first;
                const double sum = loops.dot(x, x, std::min(kChunk, n - first));
                if (chunks == 1)
                  out[i] = static_cast<T>(std::sqrt(sum));
                else
                  sums[i] = sum;
              }
            });
        if (chunks == 1) return;
        for (int64_t row = 0; row < rows; ++row) {
          double sum = 0;
          for (int64_t k = 0; k < chunks; ++k) sum += sums[row * chunks + k];
          out[row] = static_cast<T>(std::sqrt(sum));
        }
      },
      chunks == 1 ? 0 : static_cast<size_t>(rows * chunks) * sizeof(double));
}

}  // namespace

std::unique_ptr<Kernel> prepare_euclidean_norm(const KernelRequest& request) {
  const int64_t rows = request.results[0].size(), n = request.operands[0].shape.back();
  return request.operands[0].dtype == DType::kF64 ? row_norms<double>(rows, n)
                                                  : row_norms<float>(rows, n);
}

}  // namespace paddle::cpu
