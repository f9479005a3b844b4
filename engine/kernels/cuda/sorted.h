#pragma once
// Sorted elements in scratch, for kernels of groups of equal ones.

#include <memory>

#include "ops/core/kernel.h"

namespace paddle::cuda {

/// Places in scratch, one after the other.
class Scratch {
 public:
  /// The offset of that many bytes.
  size_t add(int64_t bytes);
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

/// Elements of a contiguous tensor along an axis in rising order, equal ones in the order of their
/// places, with these places.
class Sorted {
 public:
  Sorted(const KernelRequest& request, DType type, const Dims& shape, int64_t axis,
         Scratch& scratch);
  /// False if there is no kernel.
  explicit operator bool() const { return sort_ != nullptr; }

  struct Places {
    const void* values;  ///< of the type of x
    const void* order;   ///< int64, along the axis
  };
  /// Queues the sort of x.
  Places run(const RunContext& context, const void* x) const;

 private:
  std::shared_ptr<Kernel> sort_;
  size_t values_ = 0, order_ = 0, scratch_ = 0;
};

}  // namespace paddle::cuda
