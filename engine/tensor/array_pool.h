#pragma once
// Memory for arrays that live about as long as each other, such as the weights of a model: they lie
// side by side in blocks of huge pages. Memory that is touched for the first time costs a fault for
// each page, which for the weights of a model is as much time as reading them.

#include "tensor/tensor.h"

namespace paddle {

class ArrayPool {
 public:
  /// The threads that write an array. Pages for one thread are made ready by all of them; many
  /// threads do better to touch each page just before they fill it, while it is in their caches.
  enum class Writers { kOne, kAll };
  explicit ArrayPool(Writers writers = Writers::kOne) : writers_(writers) {}

  /// Contiguous, not filled; aligned for any vector. kDevice if there is no memory. A block is
  /// freed with the last of its arrays.
  Array empty(DType dtype, Dims shape);
  std::shared_ptr<Storage> allocate(size_t bytes);

 private:
  Writers writers_;
  std::shared_ptr<Storage> block_;
  size_t used_ = 0, touched_ = 0;
};

}  // namespace paddle
