#pragma once
// Recorded work of a stream, which the driver calls a graph, and the calls that are wrong while
// work is recorded. The driver's records hold the launches of kernels with their arguments.

#include "kernels/cuda/stream.h"

namespace paddle::cuda {

/// Records what this thread queues on the stream from now on.
void begin_recording(paddle_stream stream);
/// The record. kUsage with the first wrong call if there was one.
paddle_graph end_recording(paddle_stream stream);
void launch(paddle_graph graph, paddle_stream stream);
/// Waits for the stream that the graph was launched on last.
void destroy(paddle_graph graph);

/// kUsage naming the call, if this thread records work; the record is spoiled then.
void reject_while_recording(const char* call);
/// The same if any thread records work on the stream.
void reject_on_recording(paddle_stream stream, const char* call);
/// Memory that belongs to the record, for a stream that records.
void* allocate_for_recording(paddle_stream stream, size_t bytes);

}  // namespace paddle::cuda
