// Modes, cumulative products and extrema along an axis, and searchsorted.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/common/rows.h"
#include "kernels/indexing/ordering.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sorting.h"
#include "tensor/complex.h"

namespace paddle::cpu {
namespace {

template <class T>
bool is_equal(T a, T b) {
  return !nan_last_less(a, b) && !nan_last_less(b, a);
}

/// nan_last_less without branches.
template <class T>
bool precedes(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<int>(a < b) | (static_cast<int>(b != b) & static_cast<int>(a == a));
  else
    return nan_last_less(a, b);
}

/// How many of the n elements, first those that `before` holds for, it holds for. Without branches,
/// whose outcomes no processor could predict.
template <class T, class Before>
int64_t partition_point(const T* x, int64_t n, Before before) {
  if (n == 0) return 0;
  const T* at = x;
  while (n > 1) {
    const int64_t half = n / 2;
    at += static_cast<int64_t>(before(at[half - 1])) * half;
    n -= half;
  }
  return at - x + static_cast<int64_t>(before(*at));
}

/// Rows along an optional axis; without one, the flattened tensor.
Rows rows_along(const Dims& shape, const std::optional<int64_t>& axis) {
  if (axis) return Rows::of(shape, *axis);
  return Rows::of({element_count(std::span<const int64_t>(shape))}, 0);
}

}  // namespace

std::unique_ptr<Kernel> prepare_mode(const KernelRequest& request) {
  const Rows rows = Rows::of(request.operands[0].shape, ModeAttrs(request.attrs).axis);
  if (rows.length == 0) fail(ErrorCode::kUsage, "mode: the axis is empty");
  return visit_dtype(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const size_t each = row_buffer_bytes(rows.length, 8);
    return make_kernel(
        [=](const RunContext& context, void* const* operands, void* const* results) {
          for_each_row(context, rows.count(), rows.length * 32, each,
                       [&](int64_t row, std::byte* buffer) {
                         const T* const x = static_cast<const T*>(operands[0]) + rows.start(row);
                         int64_t* const order = reinterpret_cast<int64_t*>(buffer);
                         const auto value = [&](int64_t i) { return x[i * rows.inner]; };
                         std::iota(order, order + rows.length, int64_t{0});
                         std::sort(order, order + rows.length, [&](int64_t a, int64_t b) {
                           if (nan_last_less(value(a), value(b))) return true;
                           return !nan_last_less(value(b), value(a)) && a < b;
                         });
                         int64_t best = 0, max_count = 0;
                         for (int64_t i = 0; i < rows.length;) {
                           int64_t end = i + 1;
                           while (end < rows.length && is_equal(value(order[i]), value(order[end])))
                             ++end;
                           if (end - i > max_count) {
                             max_count = end - i;
                             best = order[end - 1];
                           }
                           i = end;
                         }
                         static_cast<T*>(results[0])[row] = value(best);
                         static_cast<int64_t*>(results[1])[row] = best;
                       });
        },
        row_scratch(rows.count(), each));
  });
}

std::unique_ptr<Kernel> prepare_cumprod(const KernelRequest& request) {
  const Rows rows = rows_along(request.operands[0].shape, CumprodAttrs(request.attrs).dim);
  const DType from = request.operands[0].dtype, to = request.results[0].dtype;
  const ConvertFn load = convert_fn(from, to);
  const int64_t from_item = item_size(from);
  return visit_number(to, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const size_t each = row_buffer_bytes(rows.length, sizeof(T));
    return make_kernel(
        [=](const RunContext& context, void* const* operands, void* const* results) {
          for_each_row(
              context, rows.count(), rows.length * 4, each, [&](int64_t row, std::byte* buffer) {
                T* const values = reinterpret_cast<T*>(buffer);
                load(static_cast<const std::byte*>(operands[0]) + rows.start(row) * from_item,
                     rows.inner, values, rows.length);
                T* const out = static_cast<T*>(results[0]) + rows.start(row);
                if constexpr (std::is_integral_v<T>) {
                  uint64_t product = 1;
                  for (int64_t i = 0; i < rows.length; ++i)
                    out[i * rows.inner] =
                        static_cast<T>(product *= static_cast<uint64_t>(values[i]));
                } else if constexpr (kIsComplex<T>) {
                  std::complex<double> product = 1;
                  for (int64_t i = 0; i < rows.length; ++i)
                    out[i * rows.inner] = T(product *= std::complex<double>(values[i]));
                } else {
                  double product = 1;
                  for (int64_t i = 0; i < rows.length; ++i)
                    out[i * rows.inner] = static_cast<T>(product *= static_cast<double>(values[i]));
                }
              });
        },
        row_scratch(rows.count(), each));
  });
}

std::unique_ptr<Kernel> prepare_cumulative_extremum(const KernelRequest& request) {
  const Rows rows = rows_along(request.operands[0].shape, CummaxAttrs(request.attrs).axis);
  const bool largest = request.op.name() == "cummax";
  const bool is_int64 = request.results[1].dtype == DType::kI64;
  return visit_dtype(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      parallel_for(rows.count(), std::max<int64_t>(1, 8192 / (rows.length + 1)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = begin; row < end; ++row) {
                       const int64_t start = rows.start(row);
                       const T* const x = static_cast<const T*>(operands[0]) + start;
                       T best = rows.length > 0 ? x[0] : T();
                       int64_t position = 0;
                       for (int64_t i = 0; i < rows.length; ++i) {
                         const T value = x[i * rows.inner];
                         const bool nan = value != value;
                         if (nan || (best == best && (largest ? value >= best : value <= best))) {
                           best = value;
                           position = i;
                         }
                         static_cast<T*>(results[0])[start + i * rows.inner] = best;
                         if (is_int64)
                           static_cast<int64_t*>(results[1])[start + i * rows.inner] = position;
                         else
                           static_cast<int32_t*>(results[1])[start + i * rows.inner] =
                               static_cast<int32_t>(position);
                       }
                     }
                   });
    });
  });
}

std::unique_ptr<Kernel> prepare_logcumsumexp(const KernelRequest& request) {
  const Rows rows = rows_along(request.operands[0].shape, LogcumsumexpAttrs(request.attrs).axis);
  const ConvertFn load = convert_fn(request.operands[0].dtype, DType::kF64);
  const int64_t item = item_size(request.operands[0].dtype);
  return visit_float(request.results[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const size_t each = row_buffer_bytes(rows.length, 8);
    return make_kernel(
        [=](const RunContext& context, void* const* operands, void* const* results) {
          for_each_row(context, rows.count(), rows.length * 16, each,
                       [&](int64_t row, std::byte* buffer) {
                         double* const values = reinterpret_cast<double*>(buffer);
                         load(static_cast<const std::byte*>(operands[0]) + rows.start(row) * item,
                              rows.inner, values, rows.length);
                         T* const out = static_cast<T*>(results[0]) + rows.start(row);
                         double highest = -INFINITY, sum = 0;  // Σ exp(x - highest)
                         for (int64_t i = 0; i < rows.length; ++i) {
                           if (values[i] > highest) {
                             sum = sum * std::exp(highest - values[i]) + 1;
                             highest = values[i];
                           } else if (highest != -INFINITY || values[i] != values[i]) {
                             sum += std::exp(values[i] - highest);
                           }
                           out[i * rows.inner] =
                               static_cast<T>(sum == 0 ? -INFINITY : highest + std::log(sum));
                         }
                       });
        },
        row_scratch(rows.count(), each));
  });
}

std::unique_ptr<Kernel> prepare_searchsorted(const KernelRequest& request) {
  const SearchsortedAttrs attrs(request.attrs);
  const Layout &sequence = request.operands[0], &values = request.operands[1];
  const int64_t length = sequence.shape.back(), count = values.size();
  const bool one = sequence.shape.size() == 1, right = attrs.right, narrow = attrs.out_int32;
  const int64_t per_row = one || values.shape.empty() ? std::max<int64_t>(1, count)
                                                      : std::max<int64_t>(1, values.shape.back());
  return visit_dtype(sequence.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      parallel_for(count, 1024, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* const row = static_cast<const T*>(operands[0]) + i / per_row * length;
          const T value = static_cast<const T*>(operands[1])[i];
          const int64_t position =
              right ? partition_point(row, length, [&](T each) { return !precedes(value, each); })
                    : partition_point(row, length, [&](T each) { return precedes(each, value); });
          if (narrow)
            static_cast<int32_t*>(results[0])[i] = static_cast<int32_t>(position);
          else
            static_cast<int64_t*>(results[0])[i] = position;
        }
      });
    });
  });
}

}  // namespace paddle::cpu
