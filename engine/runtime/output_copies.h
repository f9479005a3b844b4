#pragma once
// The outputs of a run that is only queued on a device: their copies in memory of the host, and
// when they are there. The device continues with further runs meanwhile.

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

  Device device_;
  paddle_event copied_ = nullptr;
  std::vector<Array> arrays_;  ///< on the host; their elements are there after `wait`
  std::vector<void*> memory_;  ///< that copies write, of each array
  bool waits_ = false;         ///< whether copies are queued
};

}  // namespace paddle::runtime
