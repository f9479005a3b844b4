// argmax, argmin and cumulative sums along an axis.

#include <algorithm>

#include "kernels/common/rows.h"
#include "ops/generated/reduce.h"
#include "tensor/complex.h"

namespace paddle::cpu {
namespace {

/// No axis means the flattened tensor.
Rows rows_along(const Dims& shape, const std::optional<int64_t>& axis) {
  if (axis) return Rows::of(shape, *axis);
  return Rows::of({element_count(std::span<const int64_t>(shape))}, 0);
}

/// Index of the first largest (or smallest) element, or of the first NaN.
template <class T>
int64_t find_extremum(const T* x, int64_t stride, int64_t n, bool largest) {
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

}  // namespace

std::unique_ptr<Kernel> prepare_arg_extremum(const KernelRequest& request) {
  const bool largest = request.op.name() == "argmax";
  const ArgmaxAttrs attrs(request.attrs);
  const Rows rows = rows_along(request.operands[0].shape, attrs.axis);
  const DType result_type = request.results[0].dtype;
  const ConvertFn store = convert_fn(DType::kI64, result_type);
  const int64_t item = item_size(result_type);
  return visit_dtype(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      const T* const x = static_cast<const T*>(operands[0]);
      parallel_for(rows.count(), std::max<int64_t>(1, 16384 / std::max<int64_t>(1, rows.length)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = begin; row < end; ++row) {
                       const int64_t at =
                           find_extremum(x + rows.start(row), rows.inner, rows.length, largest);
                       store(&at, 1, static_cast<std::byte*>(results[0]) + row * item, 1);
                     }
                   });
    });
  });
}

std::unique_ptr<Kernel> prepare_cumulative(const KernelRequest& request) {
  const CumsumAttrs attrs(request.attrs);
  Rows rows = rows_along(request.operands[0].shape, attrs.axis);
  DType from = request.operands[0].dtype, to = request.results[0].dtype;
  if (is_complex(from) != is_complex(to)) return nullptr;
  if (is_complex(from)) {  // real and imaginary parts are two columns
    rows.inner *= 2;
    from = real_type(from);
    to = real_type(to);
  }
  // Floats are summed in f64, so that long f32 sums stay accurate; integers wrap around.
  const DType compute = is_float(to) ? DType::kF64 : DType::kU64;
  const ConvertFn load = is_float(to) ? convert_fn(from, compute) : convert_fn(from, DType::kI64);
  const ConvertFn store = is_float(to) ? convert_fn(compute, to) : convert_fn(DType::kI64, to);
  const int64_t from_item = item_size(from), to_item = item_size(to);
  const size_t each = row_buffer_bytes(rows.length, 16);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
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
      row_scratch(rows.count(), each));
}

}  // namespace paddle::cpu
