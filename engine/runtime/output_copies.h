#pragma once
// The outputs of a run that is only queued on a device: their copies in memory of the host, and
// when they are there. The device continues with further runs meanwhile.

#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::runtime {

class OutputCopies {
 public:
  explicit OutputCopies(Device device);
  /// Waits for queued copies, which write into this object's memory.
  ~OutputCopies();
  OutputCopies(const OutputCopies&) = delete;
  OutputCopies& operator=(const OutputCopies&) = delete;

  /// Queues copies of contiguous arrays of the device after the kernels that are queued now, in
  /// place of earlier ones.
  void queue(const std::vector<Array>& outputs);
  /// Waits for the copies only, not for what was queued after them. Errors of kernels are not
  /// reported here but by the next `synchronize` of the device.
  const std::vector<Array>& wait();

 private:
  void release();
  void allocate(const std::vector<Array>& outputs);

  Device device_;
  paddle_event copied_ = nullptr;
  std::vector<Array> arrays_;       ///< on the host; their elements are there after `wait`
  std::vector<std::byte*> memory_;  ///< that copies write, of each array
  std::vector<void*> blocks_;       ///< of host memory
  /// Small outputs are gathered here first, so that one copy brings all of them to the host.
  std::shared_ptr<Storage> gathered_;
  std::byte* gathered_copy_ = nullptr;  ///< on the host
  std::vector<std::byte*> places_;      ///< in `gathered_`, of each array; null for large ones
  bool waits_ = false;                  ///< whether copies are queued
  bool queues_ = false;                 ///< copies, after which no event is recorded yet
};

}  // namespace paddle::runtime
