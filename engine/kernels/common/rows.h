#pragma once
// Helpers for kernels that work on rows along one axis, such as softmax, cumulative sums and
// sorting: a row is loaded into contiguous f32 or f64 (or used in place), processed, and written
// back.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/common/convert.h"
#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "kernels/elementwise/elementwise.h"
#include "ops/core/kernel.h"

namespace paddle::cpu {

/// A contiguous tensor as rows along `axis`: element k of row r is at start(r) + k * inner.
struct Rows {
  int64_t outer = 1, length = 1, inner = 1;
  int64_t count() const { return outer * inner; }
  int64_t start(int64_t row) const { return row / inner * length * inner + row % inner; }

  /// A negative axis counts from the end; 0-D tensors are one row of one element.
  static Rows of(const Dims& shape, int64_t axis) {
    Rows rows;
    const int64_t rank = static_cast<int64_t>(shape.size());
    if (rank == 0) return rows;
    if (axis < 0) axis += rank;
    for (int64_t i = 0; i < rank; ++i)
      (i < axis    ? rows.outer
       : i == axis ? rows.length
                   : rows.inner) *= shape[static_cast<size_t>(i)];
    return rows;
  }
};

/// Maximum number of workers, which each have a row buffer in scratch.
constexpr int64_t kRowWorkers = 64;

inline size_t row_buffer_bytes(int64_t length, int64_t item) {
  return round_up_to_cache_line(static_cast<size_t>(length * item));
}
/// Scratch for `bytes_per_worker` bytes per worker.
inline size_t row_scratch(int64_t rows, size_t bytes_per_worker) {
  return static_cast<size_t>(std::min(rows, kRowWorkers)) * bytes_per_worker;
}

/// Calls `body(row, buffer)` for all rows, with a buffer of `bytes_per_worker` bytes that no other
/// thread uses.
template <class Body>
void for_each_row(const RunContext& context, int64_t rows, int64_t length, size_t bytes_per_worker,
                  Body body) {
  const int64_t workers = std::min(rows, kRowWorkers);
  const int64_t grain = std::max<int64_t>(
      1,
      8192 / std::max<int64_t>(1, length * ((rows + workers - 1) / std::max<int64_t>(1, workers))));
  for_each_task(rows, workers, context.scratch, bytes_per_worker, body, grain);
}

/// Writes n contiguous elements to addresses `stride` elements apart.
template <class T>
void scatter_row(const T* source, T* target, int64_t stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) target[i * stride] = source[i];
}

}  // namespace paddle::cpu
