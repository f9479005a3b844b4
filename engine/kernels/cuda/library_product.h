#pragma once
// Products of matrices by cuBLASLt, where it is installed. Its backend is asked before our own
// kernels, which compute what it declines: few rows or columns, float64, integers, and strides that
// its layouts do not have.

#include <memory>
#include <optional>

#include "kernels/cuda/matmul.h"
#include "ops/core/backend.h"

namespace paddle::cuda {

/// The function of a product that is stored: out = activation(factor x y + bias).
enum class ProductActivation : uint8_t { kNone, kRelu, kTanhGelu };

inline constexpr uintptr_t kProductAlignment = 16;  ///< of matrices, in bytes

/// A product that cuBLASLt computes by the algorithm that its heuristics name first among those
/// that give the same bits in every run.
class LibraryProduct {
 public:
  /// Null where cuBLASLt is missing or declines. The bias, if any, is of the result's type. With
  /// `pinned` only what cannot be computed is declined.
  static std::shared_ptr<const LibraryProduct> of(int device, const Product& product,
                                                  ProductActivation activation, bool pinned);
  ~LibraryProduct();
  LibraryProduct(const LibraryProduct&) = delete;
  LibraryProduct& operator=(const LibraryProduct&) = delete;

  size_t workspace_bytes() const;
  /// Queues the product; addresses are multiples of kProductAlignment.
  void launch(paddle_stream stream, const void* x, const void* y, const void* bias, void* out,
              std::byte* workspace) const;

 private:
  struct State;
  explicit LibraryProduct(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The backend `cublaslt`.
std::unique_ptr<Kernel> prepare_library_product(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_library_product_group(const FusedRequest& request);
bool has_library_product(const Op& op, const TargetInfo& target, std::span<const DType> operands);

}  // namespace paddle::cuda
