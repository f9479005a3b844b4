#include "kernels/linalg/complex_matmul.h"

#include <algorithm>
#include <complex>

#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/linalg/gemm.h"
#include "tensor/complex.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kWorkers = 16;

template <class T>
class ComplexMatmul final : public Kernel {
 public:
  ComplexMatmul(const MatmulShape& shape, const Layout* bias, const Dims& result) : shape_(shape) {
    if (bias) bias_.emplace_back(*bias, result, dtype_of<std::complex<T>>());
    row_blocks_ = (shape_.m + kGemmRows - 1) / kGemmRows;
    column_blocks_ = (shape_.n + kGemmColumns - 1) / kGemmColumns;
    tasks_ = shape_.batches() * row_blocks_ * column_blocks_;
  }

  size_t scratch_bytes() const override {
    return kWorkerBytes * static_cast<size_t>(std::min(kWorkers, tasks_));
  }

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    const int64_t workers = std::min(kWorkers, tasks_);
    const int64_t flops =
        8 * shape_.k * std::min(shape_.m, kGemmRows) * std::min(shape_.n, kGemmColumns);
    const int64_t each = flops * ((tasks_ + workers - 1) / std::max<int64_t>(1, workers));
    for_each_task(
        tasks_, workers, context.scratch, kWorkerBytes,
        [&](int64_t task, std::byte* scratch) { block(task, operands, results[0], scratch); },
        std::max<int64_t>(1, 100000 / std::max<int64_t>(1, each)));
  }

  std::string implementation() const override { return "cpu:gemm"; }

 private:
  static constexpr size_t kTile = static_cast<size_t>(kGemmRows * kGemmColumns) * sizeof(T);
  static inline const size_t kWorkspace = round_up_to_cache_line(gemm_workspace_bytes(sizeof(T)));
  static inline const size_t kWorkerBytes =
      3 * kTile + kWorkspace + static_cast<size_t>(kGemmColumns) * 2 * sizeof(T);

  /// The real or imaginary parts of a block: a matrix with twice the strides.
  static MatrixView<T> part(const void* base, int64_t offset, int64_t row, int64_t column,
                            bool imaginary) {
    return {static_cast<const T*>(base) + 2 * offset + (imaginary ? 1 : 0), 2 * row, 2 * column};
  }

  void block(int64_t task, void* const* operands, void* result, std::byte* scratch) const {
    const int64_t batch = task / (row_blocks_ * column_blocks_);
    const int64_t i0 = task / column_blocks_ % row_blocks_ * kGemmRows;
    const int64_t j0 = task % column_blocks_ * kGemmColumns;
    const int64_t m = std::min(kGemmRows, shape_.m - i0), n = std::min(kGemmColumns, shape_.n - j0);
    T* const reals = reinterpret_cast<T*>(scratch);  // x.re y.re
    T* const negatives = reals + kTile / sizeof(T);  // x.im y.im, which is subtracted
    T* const imaginary = negatives + kTile / sizeof(T);
    std::byte* const workspace = scratch + 3 * kTile;
    std::byte* const bias_row = workspace + kWorkspace;
    for (T* const tile : {reals, negatives, imaginary}) std::fill_n(tile, m * kGemmColumns, T(0));
    const auto x = [&](bool imag) {
      return part(operands[0], shape_.x_offset(batch) + i0 * shape_.x_row, shape_.x_row,
                  shape_.x_column, imag);
    };
    const auto y = [&](bool imag) {
      return part(operands[1], shape_.y_offset(batch) + j0 * shape_.y_column, shape_.y_row,
                  shape_.y_column, imag);
    };
    const auto add = [&](bool x_imag, bool y_imag, T* tile) {
      gemm_block(m, n, shape_.k, x(x_imag), y(y_imag), tile, kGemmColumns, workspace);
    };
    add(false, false, reals);
    add(true, true, negatives);
    add(false, true, imaginary);
    add(true, false, imaginary);
    auto* const out = static_cast<std::complex<T>*>(result);
    for (int64_t i = 0; i < m; ++i) {
      const int64_t first = (batch * shape_.m + i0 + i) * shape_.n + j0;
      const std::complex<T>* bias = nullptr;
      if (!bias_.empty())
        bias = static_cast<const std::complex<T>*>(bias_[0].read(operands[2], first, n, bias_row));
      for (int64_t j = 0; j < n; ++j) {
        const int64_t at = i * kGemmColumns + j;
        const std::complex<T> sum(reals[at] - negatives[at], imaginary[at]);
        out[first + j] = bias ? sum + bias[j] : sum;
      }
    }
  }

  MatmulShape shape_;
  std::vector<StridedReader> bias_;  // at most one
  int64_t row_blocks_, column_blocks_, tasks_;
};

}  // namespace

std::unique_ptr<Kernel> complex_matmul(DType dtype, const MatmulShape& shape, const Layout* bias,
                                       const Dims& result) {
  if (dtype == DType::kC128) return std::make_unique<ComplexMatmul<double>>(shape, bias, result);
  return std::make_unique<ComplexMatmul<float>>(shape, bias, result);
}

}  // namespace paddle::cpu
