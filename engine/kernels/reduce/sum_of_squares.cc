// Sums of squares for gradient norms, in f64: squares do not overflow, and the sum is finite if
// every element is. Partial sums cover fixed chunks, so that neither the number of threads nor the
// element type changes the result.

#include <algorithm>
#include <numeric>

#include "base/parallel.h"
#include "kernels/indexing/sorted_rows.h"
#include "kernels/optimizer/update_simd.h"
#include "ops/core/kernel.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kChunk = 16384;  // elements of one partial sum
constexpr int64_t kBlock = 1024;   // elements converted and summed at a time

/// f64 is read as f64, everything else as f32.
template <class T>
std::unique_ptr<Kernel> dense(const Layout& x) {
  const int64_t size = x.size(), chunks = (size + kChunk - 1) / kChunk, item = item_size(x.dtype);
  const ConvertFn convert = x.dtype == dtype_of<T>() ? nullptr : convert_fn(x.dtype, dtype_of<T>());
  return make_kernel(
      [=](const RunContext& c, void* const* operands, void* const* results) {
        auto* const sums = reinterpret_cast<double*>(c.scratch);
        const auto* const values = static_cast<const std::byte*>(operands[0]);
        const auto& loops = update_loops<T>();
        parallel_for(chunks, 4, [&](int64_t first, int64_t last) {
          alignas(64) T buffer[kBlock];
          for (int64_t chunk = first; chunk < last; ++chunk) {
            const int64_t begin = chunk * kChunk, end = std::min(size, begin + kChunk);
            double sum = 0;
            for (int64_t at = begin; at < end; at += kBlock) {
              const int64_t n = std::min(kBlock, end - at);
              const std::byte* const from = values + at * item;
              if (convert) convert(from, 1, buffer, n);
              sum += loops.sum_of_squares(convert ? buffer : reinterpret_cast<const T*>(from), n);
            }
            sums[chunk] = sum;
          }
        });
        *static_cast<double*>(results[0]) = std::accumulate(sums, sums + chunks, 0.0);
      },
      static_cast<size_t>(chunks) * sizeof(double));
}

template <class T>
std::unique_ptr<Kernel> rows(const Layout& x) {
  const int64_t count = x.shape[0];
  const RowGradientSum<T> row_gradient(x);
  return make_kernel(
      [=](const RunContext& c, void* const* operands, void* const* results) {
        const std::span<const RowEntry> entries =
            sort_rows(static_cast<const int64_t*>(operands[1]), count, INT64_MAX, c.scratch);
        auto* const sums = reinterpret_cast<double*>(c.scratch + sort_scratch_bytes(count));
        std::fill_n(sums, count, 0.0);
        for_each_distinct_row(entries, [&](int64_t, int64_t first, int64_t last) {
          row_gradient.run(operands[0], entries, first, last,
                           [&](int64_t, int64_t n, const T* sum) {
                             sums[first] += update_loops<T>().sum_of_squares(sum, n);
                           });
        });
        *static_cast<double*>(results[0]) = std::accumulate(sums, sums + count, 0.0);
      },
      sort_scratch_bytes(count) + static_cast<size_t>(count) * sizeof(double));
}

}  // namespace

std::unique_ptr<Kernel> prepare_sum_of_squares(const KernelRequest& request) {
  const Layout& x = request.operands[0];
  const bool is_f64 = x.dtype == DType::kF64;
  if (request.operands[1].present) return is_f64 ? rows<double>(x) : rows<float>(x);
  return is_f64 ? dense<double>(x) : dense<float>(x);
}

}  // namespace paddle::cpu
