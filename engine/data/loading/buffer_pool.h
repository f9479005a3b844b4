#pragma once
// Buffers of batches that the consumer has let go of, kept for the next ones, so that a steady run
// takes no new memory.

#include <memory>
#include <mutex>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::data {

/// Gives arrays; the buffer of one comes back when the last array on it dies, on whichever thread
/// that is. Lives in a shared_ptr, which arrays may outlive.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  Array array(DType dtype, Dims shape);  ///< contiguous, uninitialized

 private:
  std::shared_ptr<Storage> take(size_t bytes);
  void put(std::shared_ptr<Storage> buffer);
  std::mutex mutex_;
  std::vector<std::shared_ptr<Storage>> free_;
};

}  // namespace paddle::data
