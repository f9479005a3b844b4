#include "kernels/cuda/graph.h"

#include <memory>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/memory.h"

struct paddle_graph_s {
  paddle::cuda::CUgraphExec handle = nullptr;
  int device = 0;
  /// Of the stream that it was recorded on: its kernels use the counters there, too.
  std::shared_ptr<paddle::cuda::ErrorMemory> errors;
  bool may_fail = false;  ///< holds kernels that can record an error
  paddle::CopyCounts copies;
  std::vector<void*> memory;
  paddle_stream last = nullptr;  ///< that it was launched on
};

namespace paddle::cuda {
namespace {

/// The stream that this thread records.
paddle_stream& recorded_here() {
  thread_local paddle_stream stream = nullptr;
  return stream;
}

/// Guards `spoiled` of all streams.
std::mutex& spoiling() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

[[noreturn]] void spoil(paddle_stream stream, const char* call) {
  const std::string message = str("cuda: ", call, " while work is recorded");
  {
    const std::lock_guard lock(spoiling());
    if (stream->spoiled.empty()) stream->spoiled = message;
  }
  throw Error(ErrorCode::kUsage, message);
}

/// While active, this thread may allocate although it records work.
class RelaxedCapture {
 public:
  RelaxedCapture() {
    check(driver().cuThreadExchangeStreamCaptureMode(&mode_), "cuThreadExchangeStreamCaptureMode");
  }
  ~RelaxedCapture() { driver().cuThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  int mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace

void reject_while_recording(const char* call) {
  if (const paddle_stream stream = recorded_here()) spoil(stream, call);
}

void reject_on_recording(paddle_stream stream, const char* call) {
  if (stream->is_recording) spoil(stream, call);
}

void begin_recording(paddle_stream stream) {
  reject_while_recording("begin_capture");
  reject_on_recording(stream, "begin_capture");
  use_gpu(stream->device);
  // Releases meanwhile must not record events on this stream.
  hold_released(stream->device);
  const CUresult result =
      driver().cuStreamBeginCapture(stream->handle, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  if (result != CUDA_SUCCESS) take_released(stream->device);
  check(result, "cuStreamBeginCapture");
  stream->spoiled.clear();
  stream->recorded = {};
  stream->could_fail = stream->may_fail.exchange(false);
  stream->is_recording = true;
  recorded_here() = stream;
}

paddle_graph end_recording(paddle_stream stream) {
  if (recorded_here() != stream)
    fail(ErrorCode::kUsage, "cuda: end_capture without begin_capture on this thread");
  recorded_here() = nullptr;
  use_gpu(stream->device);
  auto made = std::make_unique<paddle_graph_s>();
  made->device = stream->device;
  CUgraph recorded = nullptr;
  CUresult result = driver().cuStreamEndCapture(stream->handle, &recorded);
  stream->is_recording = false;
  made->errors = stream->errors;
  made->may_fail = stream->may_fail.exchange(stream->could_fail);
  made->copies = stream->recorded;
  made->memory = std::exchange(stream->memory, {});
  take_released(stream->device);
  const char* call = "cuStreamEndCapture";
  if (result == CUDA_SUCCESS && stream->spoiled.empty()) {
    call = "cuGraphInstantiateWithFlags";
    result = driver().cuGraphInstantiateWithFlags(&made->handle, recorded, 0);
  }
  if (recorded) driver().cuGraphDestroy(recorded);
  if (made->handle) return made.release();
  for (void* const memory : made->memory) release_memory(stream->device, memory);
  if (!stream->spoiled.empty()) throw Error(ErrorCode::kUsage, stream->spoiled);
  check(result, call);
  fail(ErrorCode::kInternal, "cuda: ", call, " gave no graph");
}

void launch(paddle_graph graph, paddle_stream stream) {
  reject_on_recording(stream, "launch_graph");
  if (graph->device != stream->device)
    fail(ErrorCode::kUsage, "cuda: launch_graph: the stream is of another device");
  use_gpu(stream->device);
  check(driver().cuGraphLaunch(graph->handle, stream->handle), "cuGraphLaunch");
  if (graph->may_fail) note_errors_of_graph(stream, graph->errors);
  graph->last = stream;
  ++counts_of(stream->device).graph_launches;
  counts_of(stream->device).add(graph->copies);
}

void destroy(paddle_graph graph) {
  const std::unique_ptr<paddle_graph_s> owned(graph);
  use_gpu(graph->device);
  const CUresult waited = graph->last && is_stream(graph->last)
                              ? driver().cuStreamSynchronize(graph->last->handle)
                              : CUDA_SUCCESS;
  for (void* const memory : graph->memory) release_memory(graph->device, memory);
  const CUresult destroyed = driver().cuGraphExecDestroy(graph->handle);
  check(waited, "cuStreamSynchronize");
  check(destroyed, "cuGraphExecDestroy");
}

void* allocate_for_recording(paddle_stream stream, size_t bytes) {
  const RelaxedCapture relaxed;
  void* const memory = allocate_memory(stream->device, bytes);
  stream->memory.push_back(memory);
  return memory;
}

}  // namespace paddle::cuda
