#include "data/loading/buffer_pool.h"

namespace paddle::data {

Array BufferPool::array(DType dtype, Dims shape) {
  Array out;
  out.dtype = dtype;
  out.strides = contiguous_strides(shape);
  out.shape = std::move(shape);
  const auto bytes = static_cast<size_t>(storage_bytes(dtype, out.size()));
  std::shared_ptr<Storage> buffer = take(bytes);
  std::byte* data = buffer->data();
  std::shared_ptr<void> owner(data, [buffer, pool = weak_from_this()](void*) mutable {
    if (const auto alive = pool.lock()) alive->put(std::move(buffer));
  });
  out.storage = Storage::borrow(data, bytes, std::move(owner));
  return out;
}

std::shared_ptr<Storage> BufferPool::take(size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    for (auto& each : free_)
      if (each->bytes() >= bytes && each->bytes() <= 2 * bytes + 4096) {
        std::swap(each, free_.back());
        auto out = std::move(free_.back());
        free_.pop_back();
        return out;
      }
  }
  return Storage::allocate(bytes);
}

void BufferPool::put(std::shared_ptr<Storage> buffer) {
  constexpr size_t kKept = 16;
  const std::lock_guard lock(mutex_);
  if (free_.size() < kKept) free_.push_back(std::move(buffer));
}

}  // namespace paddle::data
