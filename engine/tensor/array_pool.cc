#include "tensor/array_pool.h"

#include <algorithm>

#include "base/parallel.h"

namespace paddle {
namespace {

constexpr size_t kBlock = size_t{32} << 20;
constexpr size_t kFirstBlock = size_t{1} << 20;  // enough for small models, which clear no more
constexpr size_t kSmall = size_t{4} << 10;       // no page of its own is saved
constexpr size_t kAlignment = 64;
constexpr size_t kPage = size_t{2} << 20;
constexpr size_t kAhead = 4 * kPage;

/// The system clears a page when it is first written to; here all threads have it done at once.
void touch(std::byte* data, size_t begin, size_t end) {
  const size_t first = begin / kPage, pages = (end + kPage - 1) / kPage - first;
  parallel_for(static_cast<int64_t>(pages), 1, [&](int64_t from, int64_t to) {
    for (int64_t page = from; page < to; ++page)
      data[std::max(begin, (first + static_cast<size_t>(page)) * kPage)] = std::byte{0};
  });
}

}  // namespace

std::shared_ptr<Storage> ArrayPool::allocate(size_t bytes) {
  if (bytes < kSmall) return Storage::allocate(bytes);
  if (bytes > kBlock / 4) {
    auto out = Storage::allocate(bytes);
    if (writers_ == Writers::kOne) touch(out->data(), 0, bytes);
    return out;
  }
  if (!block_ || block_->bytes() - used_ < bytes) {
    block_ = Storage::allocate(block_ || bytes > kFirstBlock ? kBlock : kFirstBlock);
    used_ = touched_ = 0;
  }
  if (writers_ == Writers::kOne && block_->bytes() == kBlock && used_ + bytes > touched_) {
    const size_t end = std::min(kBlock, std::max(used_ + bytes, touched_ + kAhead));
    touch(block_->data(), touched_, end);
    touched_ = (end + kPage - 1) / kPage * kPage;
  }
  auto out = Storage::borrow(block_->data() + used_, bytes, block_);
  used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  used_ = std::min(used_, block_->bytes());
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
