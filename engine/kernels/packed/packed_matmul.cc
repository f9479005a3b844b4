// Products of floats with packed weights in float32, forward and backward: blocks of the weights
// are unpacked into the memory of a worker, so that the whole matrix never exists in floats.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "kernels/common/rounding.h"
#include "kernels/common/workers.h"
#include "kernels/linalg/gemm.h"
#include "kernels/packed/weight_reader.h"
#include "ops/core/kernel.h"
#include "ops/generated/generation.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kWorkers = 16;
constexpr int64_t kRowsAtOnce = 128;      ///< rows of the weight
constexpr int64_t kFeaturesAtOnce = 256;  ///< a multiple of all block sizes

class PackedMatmul final : public Kernel {
 public:
  PackedMatmul(const PackedMatmulAttrs& attrs, const Layout& x, const Layout& weight)
      : reader_(attrs.format, weight.dtype),
        transposed_(attrs.transpose),
        features_(attrs.features),
        rows_(weight.shape[0]),
        row_bytes_(weight.shape[1] * item_size(weight.dtype)),
        m_(x.size() / x.shape.back()) {
    tasks_ = transposed_ ? (features_ + kFeaturesAtOnce - 1) / kFeaturesAtOnce
                         : (rows_ + kRowsAtOnce - 1) / kRowsAtOnce;
    const int64_t width = transposed_ ? std::min(features_, kFeaturesAtOnce) : features_;
    unpacked_bytes_ =
        round_up_to_cache_line(static_cast<size_t>(kRowsAtOnce * width) * sizeof(float));
    worker_bytes_ = unpacked_bytes_ + round_up_to_cache_line(gemm_workspace_bytes(sizeof(float)));
  }

  size_t scratch_bytes() const override {
    return worker_bytes_ * static_cast<size_t>(std::min(kWorkers, tasks_));
  }
  std::string implementation() const override { return "cpu:unpacked gemm"; }

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    const auto* const x = static_cast<const float*>(operands[0]);
    const auto* const weight = static_cast<const std::byte*>(operands[1]);
    auto* const out = static_cast<float*>(results[0]);
    for_each_task(tasks_, std::min(kWorkers, tasks_), context.scratch, worker_bytes_,
                  [&](int64_t task, std::byte* scratch) {
                    auto* const unpacked = reinterpret_cast<float*>(scratch);
                    if (transposed_)
                      multiply_columns(task * kFeaturesAtOnce, x, weight, unpacked, out);
                    else
                      multiply_rows(task * kRowsAtOnce, x, weight, unpacked, out);
                  });
  }

 private:
  /// Columns [first, …) of x weight^T.
  void multiply_rows(int64_t first, const float* x, const std::byte* weight, float* unpacked,
                     float* out) const {
    const int64_t n = std::min(kRowsAtOnce, rows_ - first);
    unpack(weight, first, n, 0, features_, unpacked);
    for (int64_t i = 0; i < m_; ++i) std::fill_n(out + i * rows_ + first, n, 0.0F);
    add_product(n, features_, {x, features_, 1}, {unpacked, 1, features_}, out + first, rows_,
                unpacked);
  }

  /// Columns [first, …) of x weight.
  void multiply_columns(int64_t first, const float* x, const std::byte* weight, float* unpacked,
                        float* out) const {
    const int64_t n = std::min(kFeaturesAtOnce, features_ - first);
    for (int64_t i = 0; i < m_; ++i) std::fill_n(out + i * features_ + first, n, 0.0F);
    for (int64_t row = 0; row < rows_; row += kRowsAtOnce) {
      const int64_t k = std::min(kRowsAtOnce, rows_ - row);
      unpack(weight, row, k, first, n, unpacked);
      add_product(n, k, {x + row, rows_, 1}, {unpacked, n, 1}, out + first, features_, unpacked);
    }
  }

  void unpack(const std::byte* weight, int64_t row, int64_t rows, int64_t first, int64_t count,
              float* to) const {
    for (int64_t i = 0; i < rows; ++i)
      reader_.read(weight + (row + i) * row_bytes_, first, count, to + i * count);
  }

  /// c[m, n] += a b; the workspace lies after the unpacked weights.
  void add_product(int64_t n, int64_t k, MatrixView<float> a, MatrixView<float> b, float* c,
                   int64_t c_row, float* unpacked) const {
    void* const workspace = reinterpret_cast<std::byte*>(unpacked) + unpacked_bytes_;
    for (int64_t i = 0; i < m_; i += kGemmRows)
      gemm_block(std::min(kGemmRows, m_ - i), n, k,
                 {a.data + i * a.row_stride, a.row_stride, a.column_stride}, b, c + i * c_row,
                 c_row, workspace);
  }

  WeightReader reader_;
  bool transposed_;
  int64_t features_, rows_, row_bytes_, m_, tasks_;
  size_t unpacked_bytes_, worker_bytes_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_packed_matmul(const KernelRequest& request) {
  if (request.results[0].size() == 0) return nothing_to_do();
  return std::make_unique<PackedMatmul>(PackedMatmulAttrs(request.attrs), request.operands[0],
                                        request.operands[1]);
}

}  // namespace paddle::cpu
