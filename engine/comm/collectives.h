#pragma once
// Collective operations between the ranks of a run, as operations of a program use them. Kernels
// get the interface in their run context; a library of a device implements it for memory of that
// device, and HostCollectives (host_collectives.h) computes in host memory over any transport.
//
// A group is an ascending list of ranks that contains the calling one; all of them must call the
// same collectives in the same order.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "paddle/plugin/device.h"
#include "tensor/dtype.h"

namespace paddle::comm {

enum class Reduction : uint8_t { kSum, kMax, kMin };

/// A tensor of an all-reduce of several tensors.
struct ReduceBuffer {
  const void* in = nullptr;
  void* out = nullptr;  ///< may be `in`
  int64_t count = 0;
};

/// The inputs of a collective besides its buffers.
struct CollectiveCall {
  std::span<const int> group;
  std::byte* scratch = nullptr;  ///< of the size that `…_scratch` states
  /// The stream of the device whose memory the buffers and the scratch memory are in: the
  /// collective is queued there. Null: host memory; the call returns when it is complete.
  paddle_stream stream = nullptr;
};

class Collectives {
 public:
  virtual ~Collectives() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// The source location of the operation that calls next, for records of exchanges; it lives as
  /// long as what is started. Null: unknown.
  virtual void set_location(const std::string* /*location*/) {}

  /// out = reduction over the group of `in`, for each tensor.
  virtual void all_reduce(std::span<const ReduceBuffer> tensors, DType dtype, Reduction reduction,
                          const CollectiveCall& call) = 0;
  /// `in` has a part of counts[i] elements for each rank of the group, contiguous, in rank order;
  /// out = reduction over the group of the parts for this rank.
  virtual void reduce_scatter(const void* in, void* out, std::span<const int64_t> counts,
                              DType dtype, Reduction reduction, const CollectiveCall& call) = 0;
  /// Concatenates the parts of the group, `bytes[i]` from its i-th rank, into `out`.
  virtual void all_gather(const void* in, void* out, std::span<const size_t> bytes,
                          const CollectiveCall& call) = 0;
  /// Sends `sent[i]` bytes of `in` to the i-th rank of the group, one after another, and puts the
  /// `received[i]` bytes from it into `out`, in the order of ranks. Ranks whose numbers differ are
  /// an error of the transport (kInternal).
  virtual void all_to_all(const void* in, std::span<const size_t> sent, void* out,
                          std::span<const size_t> received, const CollectiveCall& call) = 0;
  /// Sends `in` to the rank `shift` positions after this one in the group and receives `out` from
  /// the one `shift` positions before it, around the end of the group. Of the same size everywhere.
  virtual void permute(std::span<const std::byte> in, std::span<std::byte> out, int64_t shift,
                       const CollectiveCall& call) = 0;
  /// A message to a rank, which returns at once, and from one. Messages of different tags may be
  /// received in any order, those of one tag arrive in the order of sending.
  virtual void send(std::span<const std::byte> bytes, int peer, uint32_t tag,
                    paddle_stream stream) = 0;
  virtual void recv(std::span<std::byte> bytes, int peer, uint32_t tag, paddle_stream stream) = 0;

  /// Begin a collective and return. Buffers and scratch memory must stay until `wait`; lists and
  /// groups are copied.
  virtual void start_all_reduce(std::span<const ReduceBuffer> tensors, DType dtype,
                                Reduction reduction, const CollectiveCall& call) = 0;
  virtual void start_reduce_scatter(const void* in, void* out, std::span<const int64_t> counts,
                                    DType dtype, Reduction reduction,
                                    const CollectiveCall& call) = 0;
  /// `then` is called when the gather is complete or, with a stream, queued: it does or queues what
  /// follows.
  virtual void start_all_gather(const void* in, void* out, std::span<const size_t> bytes,
                                const CollectiveCall& call,
                                std::function<void(paddle_stream)> then) = 0;
  /// Returns when all started collectives are complete; with a stream, work that is queued there
  /// later waits for them. All other calls do so first.
  virtual void wait(paddle_stream stream) = 0;
};

/// Up to this many bytes, each rank sends everything to each other: one exchange instead of two.
inline constexpr size_t kSmallAllReduce = 16 * 1024;

/// Bytes of scratch memory of an all-reduce of `count` elements in all, enough for every algorithm.
size_t all_reduce_scratch(DType dtype, int64_t count, size_t group);
/// Bytes that a rank sends in an all-reduce of an array of `bytes`.
uint64_t all_reduce_sent_bytes(uint64_t bytes, size_t group);
/// Bytes of scratch memory of a reduce-scatter in which this rank gets a part of this many bytes.
size_t reduce_scatter_scratch(size_t part_bytes, size_t group);

}  // namespace paddle::comm
