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

/// As in device/matmul.cuh.
struct MatmulArguments {
  static constexpr size_t kBatchAxes = 3;
  const void *x, *y, *bias;
  void *out, *partial;
  CUdeviceptr counters;
  int64_t m, n, k, chunk, chunks, batches;
  int64_t x_row, x_column, y_row, y_column, out_row, out_column;
  int64_t batch[kBatchAxes], x_batch[kBatchAxes], y_batch[kBatchAxes], out_batch[kBatchAxes];
  double factor;
};

/// The counters of a stream that split products use; the others are free for what follows them.
inline constexpr int64_t kSplitCounters = 128;

class ProductLaunch {
 public:
  /// None where types or axes are not supported. With `split` a long inner dimension is divided
  /// where there are few results.
  static std::optional<ProductLaunch> of(const KernelRequest& request, const Product& product,
                                         bool split);
  /// The same without a kernel, for `arguments`.
  static std::optional<ProductLaunch> divided(const Product& product, bool split);

  /// The types of sums, x, y and bias in device code: "float, bf16, bf16, bf16".
  const std::string& types() const { return types_; }
  MatmulArguments arguments(paddle_stream stream, const void* x, const void* y, const void* bias,
                            void* out, std::byte* scratch) const {
    return batch_arguments(stream, product_.batch, x, y, bias, out, scratch);
  }
  /// Blocks: tiles of a batch, and batches with the chunks of each.
  int64_t tiles() const { return row_tiles() * column_tiles(); }
  int64_t row_tiles() const;
  int64_t column_tiles() const;
  int64_t batches() const;
  int64_t parts() const { return batches() * chunks_; }
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
  MatmulArguments batch_arguments(paddle_stream stream, const Dims& batch, const void* x,
                                  const void* y, const void* bias, void* out,
                                  std::byte* scratch) const;

  Product product_;
  std::string types_;
  int64_t chunks_ = 1, chunk_ = 0;
  size_t scratch_ = 0;
  Entry tile_;
};

/// Whether the operation is `matmul` or `linear`.
bool is_product(const Op& op);
/// The product that such an operation computes; none for biases of several rows.
std::optional<Product> product_of(const KernelRequest& request);

std::unique_ptr<Kernel> prepare_matmul(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_linear(const KernelRequest& request);

}  // namespace paddle::cuda
