// argmax, argmin and cumulative sums along an axis. kExtremum and kCumulative list their
// algorithms.

#include <algorithm>

#include "base/parallel.h"
#include "kernels/common/algorithm_table.h"
#include "kernels/common/rows.h"
#include "kernels/reduce/reduce_simd.h"
#include "kernels/reduce/scan_simd.h"
#include "ops/generated/reduce.h"
#include "tensor/complex.h"

namespace paddle::cpu {
namespace {

/// No axis means the flattened tensor.
Rows rows_along(const Dims& shape, const std::optional<int64_t>& axis) {
  if (axis) return Rows::of(shape, *axis);
  return Rows::of({element_count(std::span<const int64_t>(shape))}, 0);
}

/// Index of the first element for which `is` holds; there is one. Whole blocks are tested without
/// branches, in vector registers.
template <class T, class F>
int64_t find_first(const T* x, int64_t n, F is) {
  constexpr int64_t kBlock = 64;
  int64_t first = 0;
  for (; first + kBlock <= n; first += kBlock) {
    int found = 0;
    for (int64_t i = 0; i < kBlock; ++i) found |= is(x[first + i]);
    if (found) break;
  }
  return std::find_if(x + first, x + n, is) - x;
}

/// Index of the first largest (or smallest) element, or of the first NaN.
template <class T>
int64_t find_extremum(const T* x, int64_t stride, int64_t n, bool largest) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    // First the value, then its place: both loops are vector code.
    if (largest && stride == 1 && n >= 16) {
      const T value = row_loops<T>().max(x, n);
      return value == value ? find_first(x, n, [=](T v) { return v == value; })
                            : find_first(x, n, [](T v) { return v != v; });
    }
  }
  int64_t best = 0;
  T value = x[0];
  if (value != value) return 0;
  for (int64_t i = 1; i < n; ++i) {
    const T candidate = x[i * stride];
    if (candidate != candidate) return i;
    if (largest ? candidate > value : candidate < value) {
      value = candidate;
      best = i;
    }
  }
  return best;
}

constexpr int64_t kExtremumColumns = 256;

/// Whether x[c] comes before best[c], then replaces it, for one row of n columns.
template <class T, bool kMax>
void take_extrema(const T* x, int32_t row, int64_t n, T* best, int32_t* at) {
  for (int64_t c = 0; c < n; ++c) {
    const T value = x[c], old = best[c];
    const bool further = kMax ? value > old : value < old;
    const bool better = further | ((value != value) & (old == old));
    best[c] = better ? value : old;
    at[c] = better ? row : at[c];
  }
}

/// The same along an axis that others follow, for n columns of `length` rows.
template <class T>
void find_extrema(const T* x, const Rows& rows, int64_t n, bool largest, int32_t* at) {
  T best[kExtremumColumns];
  std::copy_n(x, n, best);
  std::fill_n(at, n, 0);
  const auto take = largest ? &take_extrema<T, true> : &take_extrema<T, false>;
  for (int64_t i = 1; i < rows.length; ++i)
    take(x + i * rows.inner, static_cast<int32_t>(i), n, best, at);
}

struct ExtremumProblem {
  const KernelRequest& request;
  Rows rows;
  bool largest;

  DType result_type() const { return request.results[0].dtype; }
};

/// With fewer columns in parallel, each is a row of its own.
constexpr int64_t kFewColumns = 16;

double extremum_columns_speedup(const ExtremumProblem& p) {
  const Rows& rows = p.rows;
  const bool fits = rows.inner >= kFewColumns && rows.length > 0 && rows.length <= INT32_MAX;
  return fits ? kPreferred : 0;
}

std::unique_ptr<Kernel> prepare_extremum_columns(const ExtremumProblem& p) {
  const ConvertFn store = convert_fn(DType::kI32, p.result_type());
  const int64_t item = item_size(p.result_type());
  return visit_dtype(p.request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel(
        [=, rows = p.rows, largest = p.largest](const RunContext&, void* const* operands,
                                                void* const* results) {
          const T* const x = static_cast<const T*>(operands[0]);
          const int64_t blocks = (rows.inner + kExtremumColumns - 1) / kExtremumColumns;
          const int64_t work = rows.length * std::min(rows.inner, kExtremumColumns);
          parallel_for(
              rows.outer * blocks, std::max<int64_t>(1, 16384 / work),
              [&](int64_t begin, int64_t end) {
                int32_t at[kExtremumColumns];
                for (int64_t task = begin; task < end; ++task) {
                  const int64_t outer = task / blocks, first = task % blocks * kExtremumColumns,
                                n = std::min(kExtremumColumns, rows.inner - first);
                  find_extrema(x + outer * rows.length * rows.inner + first, rows, n, largest, at);
                  store(at, 1,
                        static_cast<std::byte*>(results[0]) + (outer * rows.inner + first) * item,
                        n);
                }
              });
        },
        0, "cpu:columns");
  });
}

std::unique_ptr<Kernel> prepare_extremum_rows(const ExtremumProblem& p) {
  const ConvertFn store = convert_fn(DType::kI64, p.result_type());
  const int64_t item = item_size(p.result_type());
  return visit_dtype(p.request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel(
        [=, rows = p.rows, largest = p.largest](const RunContext&, void* const* operands,
                                                void* const* results) {
          const T* const x = static_cast<const T*>(operands[0]);
          parallel_for(rows.count(),
                       std::max<int64_t>(1, 16384 / std::max<int64_t>(1, rows.length)),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t row = begin; row < end; ++row) {
                           const int64_t at =
                               find_extremum(x + rows.start(row), rows.inner, rows.length, largest);
                           store(&at, 1, static_cast<std::byte*>(results[0]) + row * item, 1);
                         }
                       });
        },
        0, "cpu:rows");
  });
}

constexpr Algorithm<ExtremumProblem> kExtremum[] = {
    {"columns", extremum_columns_speedup, prepare_extremum_columns},
    {"rows", baseline, prepare_extremum_rows},
};

}  // namespace

std::unique_ptr<Kernel> prepare_arg_extremum(const KernelRequest& request) {
  const ArgmaxAttrs attrs(request.attrs);
  return prepare_best<ExtremumProblem>(
      kExtremum,
      {request, rows_along(request.operands[0].shape, attrs.axis), request.op.name() == "argmax"});
}

namespace {

/// Floats are summed in f64, so that long f32 sums stay accurate; integers wrap around.
struct CumulativeProblem {
  const KernelRequest& request;
  Rows rows;
  DType from, to;
};

double cumulative_columns_speedup(const CumulativeProblem& p) {
  return p.rows.inner >= kFewColumns ? kPreferred : 0;
}

/// Cumulative sums along an axis that others follow: many columns at a time, in A.
template <class A>
std::unique_ptr<Kernel> cumulative_columns(const Rows& rows, DType from, DType to) {
  // Wide blocks read and write whole rows; narrow ones occupy more threads.
  constexpr int64_t kMaxColumns = 1024, kMinColumns = 256;
  const auto blocks_of = [&](int64_t columns) { return (rows.inner + columns - 1) / columns; };
  const int64_t width =
      rows.outer * blocks_of(kMaxColumns) < thread_count() ? kMinColumns : kMaxColumns;
  constexpr bool kFloats = std::is_same_v<A, double>;
  constexpr DType kSum = kFloats ? DType::kF64 : DType::kI64;
  const bool direct = from == DType::kF32 && to == DType::kF32;
  const ConvertFn load = convert_fn(from, kSum), store = convert_fn(kSum, to);
  const int64_t from_item = item_size(from), to_item = item_size(to);
  const int64_t blocks = blocks_of(width);
  return make_kernel(
      [=](const RunContext&, void* const* operands, void* const* results) {
        const int64_t work = rows.length * std::min(width, rows.inner);
        parallel_for(
            rows.outer * blocks, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work)),
            [&](int64_t begin, int64_t end) {
              A sums[kMaxColumns], values[kMaxColumns];
              for (int64_t task = begin; task < end; ++task) {
                const int64_t first = task % blocks * width,
                              n = std::min(width, rows.inner - first);
                int64_t at = task / blocks * rows.length * rows.inner + first;
                std::fill_n(sums, n, A(0));
                if constexpr (kFloats)
                  if (direct) {
                    accumulate_rows(static_cast<const float*>(operands[0]) + at, rows.length,
                                    rows.inner, sums, static_cast<float*>(results[0]) + at, n);
                    continue;
                  }
                for (int64_t i = 0; i < rows.length; ++i, at += rows.inner) {
                  load(static_cast<const std::byte*>(operands[0]) + at * from_item, 1, values, n);
                  accumulate_row(values, sums, values, n);
                  store(values, 1, static_cast<std::byte*>(results[0]) + at * to_item, n);
                }
              }
            });
      },
      0, "cpu:columns");
}

std::unique_ptr<Kernel> prepare_cumulative_columns(const CumulativeProblem& p) {
  return is_float(p.to) ? cumulative_columns<double>(p.rows, p.from, p.to)
                        : cumulative_columns<uint64_t>(p.rows, p.from, p.to);
}

/// Sums along rows of neighbors. The additions of a row wait for each other; those of several rows
/// overlap.
template <int kRows, class T>
void accumulate_together(const T* x, int64_t n, T* out) {
  double sums[kRows] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int r = 0; r < kRows; ++r) {
      sums[r] += static_cast<double>(x[r * n + i]);
      out[r * n + i] = static_cast<T>(sums[r]);
    }
}

double cumulative_rows_speedup(const CumulativeProblem& p) {
  const bool fits = p.rows.inner == 1 && p.from == p.to;
  return fits && (p.to == DType::kF32 || p.to == DType::kF64) ? kPreferred : 0;
}

template <class T>
std::unique_ptr<Kernel> cumulative_rows(const Rows& rows) {
  constexpr int64_t kRows = 4;
  const int64_t count = rows.count(), groups = (count + kRows - 1) / kRows, n = rows.length;
  return make_kernel(
      [=](const RunContext&, void* const* operands, void* const* results) {
        const auto* const x = static_cast<const T*>(operands[0]);
        auto* const out = static_cast<T*>(results[0]);
        parallel_for(groups, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, n)),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t row = begin * kRows; row < std::min(count, end * kRows);) {
                         const int64_t at = row * n;
                         if (row + kRows <= count) {
                           accumulate_together<kRows>(x + at, n, out + at);
                           row += kRows;
                         } else {
                           accumulate_together<1>(x + at, n, out + at);
                           ++row;
                         }
                       }
                     });
      },
      0, "cpu:rows");
}

std::unique_ptr<Kernel> prepare_cumulative_rows(const CumulativeProblem& p) {
  return p.to == DType::kF64 ? cumulative_rows<double>(p.rows) : cumulative_rows<float>(p.rows);
}

/// Any types and strides, through a copy of each row.
std::unique_ptr<Kernel> prepare_cumulative_copies(const CumulativeProblem& p) {
  const DType from = p.from, to = p.to;
  const DType compute = is_float(to) ? DType::kF64 : DType::kU64;
  const ConvertFn load = is_float(to) ? convert_fn(from, compute) : convert_fn(from, DType::kI64);
  const ConvertFn store = is_float(to) ? convert_fn(compute, to) : convert_fn(DType::kI64, to);
  const int64_t from_item = item_size(from), to_item = item_size(to);
  const size_t each = row_buffer_bytes(p.rows.length, 16);
  return make_kernel(
      [=, rows = p.rows](const RunContext& context, void* const* operands, void* const* results) {
        for_each_row(
            context, rows.count(), rows.length * 4, each, [&](int64_t row, std::byte* buffer) {
              const int64_t start = rows.start(row);
              load(static_cast<const std::byte*>(operands[0]) + start * from_item, rows.inner,
                   buffer, rows.length);
              if (compute == DType::kF64) {
                double sum = 0;
                double* const values = reinterpret_cast<double*>(buffer);
                for (int64_t i = 0; i < rows.length; ++i) values[i] = sum += values[i];
              } else {
                uint64_t sum = 0;
                uint64_t* const values = reinterpret_cast<uint64_t*>(buffer);
                for (int64_t i = 0; i < rows.length; ++i) values[i] = sum += values[i];
              }
              std::byte* const packed = buffer + rows.length * 8;
              store(buffer, 1, packed, rows.length);
              std::byte* const out = static_cast<std::byte*>(results[0]) + start * to_item;
              switch (to_item) {
                case 1:
                  return scatter_row(packed, out, rows.inner, rows.length);
                case 2:
                  return scatter_row(reinterpret_cast<uint16_t*>(packed),
                                     reinterpret_cast<uint16_t*>(out), rows.inner, rows.length);
                case 4:
                  return scatter_row(reinterpret_cast<uint32_t*>(packed),
                                     reinterpret_cast<uint32_t*>(out), rows.inner, rows.length);
                default:
                  return scatter_row(reinterpret_cast<uint64_t*>(packed),
                                     reinterpret_cast<uint64_t*>(out), rows.inner, rows.length);
              }
            });
      },
      row_scratch(p.rows.count(), each), "cpu:copied_rows");
}

constexpr Algorithm<CumulativeProblem> kCumulative[] = {
    {"columns", cumulative_columns_speedup, prepare_cumulative_columns},
    {"rows", cumulative_rows_speedup, prepare_cumulative_rows},
    {"copied_rows", baseline, prepare_cumulative_copies},
};

}  // namespace

std::unique_ptr<Kernel> prepare_cumulative(const KernelRequest& request) {
  const CumsumAttrs attrs(request.attrs);
  CumulativeProblem p{request, rows_along(request.operands[0].shape, attrs.axis),
                      request.operands[0].dtype, request.results[0].dtype};
  if (is_complex(p.from) != is_complex(p.to)) return nullptr;
  if (is_complex(p.from)) {  // real and imaginary parts are two columns
    p.rows.inner *= 2;
    p.from = real_type(p.from);
    p.to = real_type(p.to);
  }
  return prepare_best<CumulativeProblem>(kCumulative, p);
}

}  // namespace paddle::cpu
