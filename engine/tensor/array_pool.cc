#include "tensor/array_pool.h"

namespace paddle {
namespace {

constexpr size_t kBlock = size_t{32} << 20;
constexpr size_t kSmall = size_t{4} << 10;  // no page of its own is saved
constexpr size_t kAlignment = 64;

}  // namespace

std::shared_ptr<Storage> ArrayPool::allocate(size_t bytes) {
  if (bytes < kSmall || bytes > kBlock / 4) return Storage::allocate(bytes);
  if (!block_ || kBlock - used_ < bytes) {
    block_ = Storage::allocate(kBlock);
    used_ = 0;
  }
  auto out = Storage::borrow(block_->data() + used_, bytes, block_);
  used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  used_ = std::min(used_, kBlock);
  return out;
}

Array ArrayPool::empty(DType dtype, Dims shape) {
  Array out;
  out.dtype = dtype;
  out.strides = contiguous_strides(shape);
  const int64_t count = element_count(std::span<const int64_t>(shape));
  out.shape = std::move(shape);
  out.storage = allocate(static_cast<size_t>(storage_bytes(dtype, count)));
  return out;
}

}  // namespace paddle
