#pragma once
// Products of matrices by our own kernels, for all types of numbers.

#include <optional>

#include "kernels/cuda/program.h"
#include "ops/core/kernel.h"

namespace paddle::cuda {

/// A batched product, out = factor x y, as device/matmul.cuh computes it. Strides count elements.
struct Product {
  DType x = DType::kF32, y = DType::kF32, out = DType::kF32;
  int64_t m = 1, n = 1, k = 1;
  int64_t x_row = 0, x_column = 0, y_row = 0, y_column = 0, out_row = 0, out_column = 1;
  Dims batch, x_batch, y_batch, out_batch;  ///< at most three axes
  double factor = 1;
  std::optional<DType> bias;  ///< one value per column
};

class ProductLaunch {
 public:
  /// None where types or axes are not supported. With `split` a long inner dimension is divided
  /// where there are few results.
  static std::optional<ProductLaunch> of(const KernelRequest& request, const Product& product,
                                         bool split);
  /// Memory for the sums of chunks.
  size_t scratch_bytes() const { return scratch_; }
  void launch(paddle_stream stream, const void* x, const void* y, const void* bias, void* out,
              std::byte* scratch) const {
    launch_batches(stream, product_.batch, x, y, bias, out, scratch);
  }
  /// The same for another size of the batch, which must not be larger.
  void launch_batches(paddle_stream stream, const Dims& batch, const void* x, const void* y,
                      const void* bias, void* out, std::byte* scratch) const;

 private:
  Product product_;
  int64_t chunks_ = 1, chunk_ = 0;
  size_t scratch_ = 0;
  Entry tile_;
};

std::unique_ptr<Kernel> prepare_matmul(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_linear(const KernelRequest& request);

}  // namespace paddle::cuda
