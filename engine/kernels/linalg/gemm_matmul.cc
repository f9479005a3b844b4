// matmul and linear in every dtype: floats with our GEMM (16-bit ones through f32), integers with
// plain loops. Used where oneDNN declines.

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/linalg/complex_matmul.h"
#include "kernels/linalg/gemm.h"
#include "kernels/linalg/matmul_shape.h"
#include "ops/core/kernel.h"
#include "ops/generated/linalg.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kWorkers = 16;

/// Operands of T are converted to C in scratch first if the types differ.
template <class C, class T>
class FloatMatmul final : public Kernel {
 public:
  FloatMatmul(const Layout& x, const Layout& y, const MatmulShape& shape, const Layout* bias,
              const Dims& result)
      : shape_(shape) {
    if (bias) bias_.emplace_back(*bias, result, dtype_of<C>());
    row_blocks_ = (shape_.m + kGemmRows - 1) / kGemmRows;
    column_blocks_ = (shape_.n + kGemmColumns - 1) / kGemmColumns;
    tasks_ = shape_.batches() * row_blocks_ * column_blocks_;
    if constexpr (!std::is_same_v<C, T>) {
      x_span_ = span_of(x, x_first_);
      y_span_ = span_of(y, y_first_);
    }
    tile_bytes_ =
        std::is_same_v<C, T> ? 0 : round_up_to_cache_line(kGemmRows * kGemmColumns * sizeof(C));
    worker_bytes_ = round_up_to_cache_line(gemm_workspace_bytes(sizeof(C))) + tile_bytes_ +
                    round_up_to_cache_line(kGemmColumns * 8);
    operand_bytes_ = round_up_to_cache_line(static_cast<size_t>(x_span_) * sizeof(C)) +
                     round_up_to_cache_line(static_cast<size_t>(y_span_) * sizeof(C));
  }

  size_t scratch_bytes() const override {
    return operand_bytes_ + worker_bytes_ * static_cast<size_t>(std::min(kWorkers, tasks_));
  }

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    const C *x, *y;
    if constexpr (std::is_same_v<C, T>) {
      x = static_cast<const C*>(operands[0]);
      y = static_cast<const C*>(operands[1]);
    } else {
      C* const wide_x = reinterpret_cast<C*>(context.scratch);
      C* const wide_y = reinterpret_cast<C*>(
          context.scratch + round_up_to_cache_line(static_cast<size_t>(x_span_) * sizeof(C)));
      widen(static_cast<const T*>(operands[0]) + x_first_, wide_x, x_span_);
      widen(static_cast<const T*>(operands[1]) + y_first_, wide_y, y_span_);
      x = wide_x - x_first_;
      y = wide_y - y_first_;
    }
    const int64_t workers = std::min(kWorkers, tasks_);
    const int64_t flops =
        2 * shape_.k * std::min(shape_.m, kGemmRows) * std::min(shape_.n, kGemmColumns);
    const int64_t each = flops * ((tasks_ + workers - 1) / std::max<int64_t>(1, workers));
    const auto run_block = [&](int64_t task, std::byte* scratch) {
      block(task, x, y, operands, static_cast<T*>(results[0]), scratch);
    };
    for_each_task(tasks_, workers, context.scratch + operand_bytes_, worker_bytes_, run_block,
                  std::max<int64_t>(1, 100000 / std::max<int64_t>(1, each)));
  }

  std::string implementation() const override { return "cpu:gemm"; }

 private:
  /// Number of elements between the lowest and the highest that a layout addresses; `first` is the
  /// lowest.
  static int64_t span_of(const Layout& layout, int64_t& first) {
    int64_t low = 0, high = 0;
    for (size_t i = 0; i < layout.shape.size(); ++i) {
      if (layout.shape[i] == 0) return 0;
      const int64_t reach = (layout.shape[i] - 1) * layout.strides[i];
      (reach < 0 ? low : high) += reach;
    }
    first = low;
    return high - low + 1;
  }

  static void widen(const T* source, C* target, int64_t n) {
    const ConvertFn convert = convert_fn(dtype_of<T>(), dtype_of<C>());
    parallel_for(n, 32768, [&](int64_t begin, int64_t end) {
      convert(source + begin, 1, target + begin, end - begin);
    });
  }

  void block(int64_t task, const C* x, const C* y, void* const* operands, T* out,
             std::byte* scratch) const {
    const int64_t per_batch = row_blocks_ * column_blocks_;
    const int64_t batch = task / per_batch;
    const int64_t i0 = task % per_batch / column_blocks_ * kGemmRows;
    const int64_t j0 = task % column_blocks_ * kGemmColumns;
    const int64_t m = std::min(kGemmRows, shape_.m - i0), n = std::min(kGemmColumns, shape_.n - j0);
    std::byte* const workspace = scratch;
    C* const tile =
        reinterpret_cast<C*>(scratch + round_up_to_cache_line(gemm_workspace_bytes(sizeof(C))));
    std::byte* const bias_row =
        scratch + round_up_to_cache_line(gemm_workspace_bytes(sizeof(C))) + tile_bytes_;
    T* const target = out + (batch * shape_.m + i0) * shape_.n + j0;
    C* c = tile;
    int64_t stride = kGemmColumns;
    if constexpr (std::is_same_v<C, T>) {
      c = target;
      stride = shape_.n;
    }
    for (int64_t i = 0; i < m; ++i) {
      if (bias_.empty()) {
        std::fill_n(c + i * stride, n, C(0));
      } else {
        const void* const row =
            bias_[0].read(operands[2], (batch * shape_.m + i0 + i) * shape_.n + j0, n, bias_row);
        std::memcpy(c + i * stride, row, static_cast<size_t>(n) * sizeof(C));
      }
    }
    gemm_block(m, n, shape_.k,
               {x + shape_.x_offset(batch) + i0 * shape_.x_row, shape_.x_row, shape_.x_column},
               {y + shape_.y_offset(batch) + j0 * shape_.y_column, shape_.y_row, shape_.y_column},
               c, stride, workspace);
    if constexpr (!std::is_same_v<C, T>) {
      const ConvertFn narrow = convert_fn(dtype_of<C>(), dtype_of<T>());
      for (int64_t i = 0; i < m; ++i) narrow(c + i * stride, 1, target + i * shape_.n, n);
    }
  }

  MatmulShape shape_;
  std::vector<StridedReader> bias_;  // at most one
  int64_t row_blocks_, column_blocks_, tasks_;
  int64_t x_span_ = 0, y_span_ = 0, x_first_ = 0, y_first_ = 0;
  size_t tile_bytes_, worker_bytes_, operand_bytes_;
};

/// Sums wrap around. For bool the product is true if any pair is both true.
template <class T>
std::unique_ptr<Kernel> integer_matmul(const MatmulShape& s) {
  return make_kernel([s](const RunContext&, void* const* operands, void* const* results) {
    const T* const x = static_cast<const T*>(operands[0]);
    const T* const y = static_cast<const T*>(operands[1]);
    T* const out = static_cast<T*>(results[0]);
    const int64_t cost = std::max<int64_t>(1, s.k * s.n);
    parallel_for(s.batches() * s.m, std::max<int64_t>(1, 65536 / cost),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     const T* const xr = x + s.x_offset(row / s.m) + row % s.m * s.x_row;
                     const T* const yb = y + s.y_offset(row / s.m);
                     for (int64_t j = 0; j < s.n; ++j) {
                       uint64_t sum = 0;
                       for (int64_t k = 0; k < s.k; ++k)
                         sum += static_cast<uint64_t>(xr[k * s.x_column]) *
                                static_cast<uint64_t>(yb[k * s.y_row + j * s.y_column]);
                       out[row * s.n + j] =
                           std::is_same_v<T, bool> ? static_cast<T>(sum != 0) : static_cast<T>(sum);
                     }
                   }
                 });
  });
}

std::unique_ptr<Kernel> matmul_kernel(const KernelRequest& request, const MatmulShape& shape,
                                      const Layout* bias) {
  const Layout &x = request.operands[0], &y = request.operands[1];
  if (is_complex(x.dtype)) return complex_matmul(x.dtype, shape, bias, request.results[0].shape);
  return visit_dtype(x.dtype, [&](auto tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      if (bias) return nullptr;
      return integer_matmul<T>(shape);
    } else {
      using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
      return std::make_unique<FloatMatmul<C, T>>(x, y, shape, bias, request.results[0].shape);
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> prepare_matmul(const KernelRequest& request) {
  const MatmulAttrs attrs(request.attrs);
  return matmul_kernel(request,
                       MatmulShape::of(request.operands[0], request.operands[1], attrs.transpose_x,
                                       attrs.transpose_y),
                       nullptr);
}

std::unique_ptr<Kernel> prepare_linear(const KernelRequest& request) {
  const bool biased = request.operands.size() > 2 && request.operands[2].present;
  return matmul_kernel(request,
                       MatmulShape::of(request.operands[0], request.operands[1], false, false),
                       biased ? &request.operands[2] : nullptr);
}

}  // namespace paddle::cpu
