#pragma once
// Errors that kernels find in their operands, such as an index out of range. The first one of a
// stream is recorded in memory of the device; the kernel continues with a valid value, and the next
// wait for the stream throws the error with the CPU's message.

#include <memory>
#include <mutex>
#include <string>

#include "base/error.h"
#include "kernels/cuda/stream.h"

namespace paddle::cuda {

/// The message of an error is `before`, the value, `after`.
struct DataMessage {
  std::string before, after;
};

/// The record that kernels write; see `record_error` in device/prelude.cuh.
struct DataError {
  int64_t site = 0;  ///< 0: no error
  int64_t value = 0;
};

/// For a launch whose kernel may record an error: the address of the stream's record, and the site
/// of the message at the operation's location (RunContext::location).
struct ErrorTarget {
  CUdeviceptr record;
  int64_t site;
};
/// A message of a kernel, whose site is looked up once for each location.
class ErrorSite {
 public:
  explicit ErrorSite(DataMessage message) : message_(std::move(message)) {}
  ErrorTarget target(paddle_stream stream, const std::string* location);

 private:
  DataMessage message_;
  std::mutex mutex_;
  const std::string* location_ = nullptr;
  int64_t site_ = 0;  ///< 0: not yet known
};

/// A graph was launched on the stream whose kernels record errors in this memory.
void note_errors_of_graph(paddle_stream stream, const std::shared_ptr<ErrorMemory>& memory);
/// Queues the copies of what kernels on the stream can have written to the host.
ErrorMemories queue_error_copy(paddle_stream stream);
/// After a wait: throws the first recorded error, kData, and clears the records.
void throw_recorded_error(paddle_stream stream, const ErrorMemories& copied);

}  // namespace paddle::cuda
