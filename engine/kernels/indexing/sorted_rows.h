#pragma once
// Entries of a row-sparse gradient sorted by table row, so that gradients of the same row are
// summed in one order whatever the number of threads.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "kernels/common/convert.h"
#include "ops/core/op.h"

namespace paddle::cpu {

/// A row of the table and the position of a gradient for it.
struct RowEntry {
  int64_t row, at;
};

/// Bytes of scratch to sort `count` entries.
inline size_t sort_scratch_bytes(int64_t count) {
  return 2 * static_cast<size_t>(count) * sizeof(RowEntry);
}

/// Entries sorted by row, without those of index -1 (no row); `scratch` holds
/// `sort_scratch_bytes(count)`. Entries start in order of position and the radix sort is stable, so
/// equal rows stay in that order.
inline std::span<const RowEntry> sort_rows(const int64_t* indices, int64_t count, int64_t rows,
                                           std::byte* scratch) {
  constexpr int kDigitBits = 11;
  constexpr uint64_t kDigits = uint64_t{1} << kDigitBits;
  auto* entries = reinterpret_cast<RowEntry*>(scratch);
  RowEntry* sorted = entries + count;
  uint64_t used = 0;  // union of the bits of all rows
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (indices[i] == -1) continue;
    if (indices[i] < 0 || indices[i] >= rows)
      fail(ErrorCode::kData, "row ", indices[i], " is out of range for a table of ", rows, " rows");
    entries[found++] = {indices[i], i};
    used |= static_cast<uint64_t>(indices[i]);
  }
  for (int shift = 0; shift < 64 && used >> shift != 0; shift += kDigitBits) {
    const auto digit = [&](const RowEntry& p) {
      return (static_cast<uint64_t>(p.row) >> shift) % kDigits;
    };
    int64_t next[kDigits] = {};
    for (int64_t i = 0; i < found; ++i) ++next[digit(entries[i])];
    std::exclusive_scan(next, next + kDigits, next, int64_t{0});
    for (int64_t i = 0; i < found; ++i) sorted[next[digit(entries[i])]++] = entries[i];
    std::swap(entries, sorted);
  }
  return {entries, static_cast<size_t>(found)};
}

/// Calls `visit(row, first, last)` with each row's entries, in parallel over rows.
template <class Visit>
void for_each_distinct_row(std::span<const RowEntry> sorted, Visit&& visit) {
  const RowEntry* const entries = sorted.data();
  const auto count = static_cast<int64_t>(sorted.size());
  parallel_for(count, 1024, [&](int64_t begin, int64_t end) {
    while (begin > 0 && begin < end && entries[begin].row == entries[begin - 1].row) ++begin;
    for (int64_t i = begin; i < end;) {
      int64_t last = i + 1;
      while (last < count && entries[last].row == entries[i].row) ++last;
      visit(entries[i].row, i, last);
      i = last;
    }
  });
}

/// Sums the gradients of one row of the table in T, whatever their float type.
template <class T>
class RowGradientSum {
 public:
  static constexpr int64_t kMaxWidth = 1024;  ///< elements of a row that are summed at a time

  explicit RowGradientSum(const Layout& rows)
      : width_(rows.shape[1]),
        item_(item_size(rows.dtype)),
        widen_(convert_fn(rows.dtype, dtype_of<T>())),
        direct_(rows.dtype == dtype_of<T>()) {}

  /// Calls `visit(column, n, sum)` with the sum of the entries [first, last), column by column.
  template <class Visit>
  void run(const void* rows, std::span<const RowEntry> entries, int64_t first, int64_t last,
           Visit&& visit) const {
    T sum[kMaxWidth], next[kMaxWidth];
    for (int64_t column = 0; column < width_; column += kMaxWidth) {
      const int64_t n = std::min(kMaxWidth, width_ - column);
      const auto gradient = [&](int64_t i) {
        return static_cast<const std::byte*>(rows) +
               (entries[static_cast<size_t>(i)].at * width_ + column) * item_;
      };
      widen_(gradient(first), 1, sum, n);
      for (int64_t i = first + 1; i < last; ++i) {
        const T* g = reinterpret_cast<const T*>(gradient(i));
        if (!direct_) {
          widen_(gradient(i), 1, next, n);
          g = next;
        }
        for (int64_t k = 0; k < n; ++k) sum[k] += g[k];
      }
      visit(column, n, sum);
    }
  }

 private:
  int64_t width_, item_;
  ConvertFn widen_;
  bool direct_;
};

}  // namespace paddle::cpu
