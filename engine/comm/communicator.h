#pragma once
// The ranks of a run and the collective operations between them. A run of one process has a
// communicator of size 1, so callers need no special case.
//
// A reduction adds up the parts of its ranks in a fixed binary tree over their positions in the
// group: ((0 + 1) + (2 + 3)) + …. The result has the same bits on all ranks, in every run, and
// over every transport.
//
// A group is an ascending list of ranks that contains the calling one; all of them must call the
// same collectives in the same order.

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/transport.h"
#include "tensor/dtype.h"

namespace paddle::comm {

enum class Reduction : uint8_t { kSum, kMax, kMin };

/// Calls of one kind: their number, the bytes that the rank sent, and their time.
struct ExchangeCost {
  int64_t calls = 0;
  int64_t bytes = 0;  ///< sent
  int64_t nanoseconds = 0;
};
using ExchangeCosts = std::array<ExchangeCost, kExchangeKinds>;

/// An exchange in time, for timelines. The n-th record of a rank with some `group` belongs to the
/// n-th of each other rank with the same one.
struct ExchangeRecord {
  Exchange kind = Exchange::kBarrier;
  int64_t begin = 0, end = 0;  ///< nanoseconds of the steady clock
  int64_t bytes = 0;           ///< sent
  uint64_t group = 0;       ///< of the kind and its ranks, or of a message's ends; 0: of no group
  bool sends_only = false;  ///< an `isend`, which does not wait
  bool background = false;  ///< overlapped with computation
};

/// A tensor of an all-reduce of several tensors.
struct ReduceBuffer {
  const void* in = nullptr;
  void* out = nullptr;
  int64_t count = 0;
};

class Communicator {
 public:
  /// A run of one process.
  Communicator();
  explicit Communicator(std::shared_ptr<Transport> transport);
  ~Communicator();
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_root() const { return rank_ == 0; }
  const std::vector<int>& all() const { return all_; }

  void barrier();
  /// Copies the bytes of rank `root` to all ranks.
  void broadcast(std::span<std::byte> bytes, int root = 0);
  /// One number of each rank, in order.
  std::vector<int64_t> gather_numbers(int64_t value);
  /// The largest of the ranks' values.
  int64_t max(int64_t value);

  /// Bytes of scratch memory that `all_reduce` needs, for all of its elements.
  static size_t all_reduce_scratch(DType dtype, int64_t count, size_t group);
  /// Bytes that a rank sends in an `all_reduce` of an array of `bytes`.
  static uint64_t all_reduce_sent_bytes(uint64_t bytes, size_t group);
  /// out = reduction over the group of `in`; `out` may be `in`.
  void all_reduce(const void* in, void* out, int64_t count, DType dtype, Reduction reduction,
                  std::span<const int> group, std::byte* scratch);
  /// The same of several tensors at once, which cost no more messages than one.
  void all_reduce(std::span<const ReduceBuffer> tensors, DType dtype, Reduction reduction,
                  std::span<const int> group, std::byte* scratch);
  /// See Transport.
  bool can_overlap() const;
  /// Computes started collectives (`start_…`) in a thread of their own, overlapped with the
  /// computation of the rank; else they are computed when they are waited for.
  void overlap(bool on);
  /// Starts an all-reduce of tensors, which with the scratch memory must stay until `wait`.
  void start_all_reduce(std::span<const ReduceBuffer> tensors, DType dtype, Reduction reduction,
                        std::span<const int> group, std::byte* scratch);
  /// The same of a reduce_scatter.
  void start_reduce_scatter(const void* in, void* out, std::span<const int64_t> counts, DType dtype,
                            Reduction reduction, std::span<const int> group, std::byte* scratch);
  /// The same of an all_gather; `then` is called when it is complete, in the same thread.
  void start_all_gather(const void* in, void* out, std::span<const size_t> bytes,
                        std::span<const int> group, std::function<void()> then = {});
  /// Returns when all started collectives are complete. All other calls do so first.
  void wait();
  /// Aborts the run if started collectives are pending, since their memory is about to be freed.
  /// For ranks that cannot continue; does nothing otherwise.
  void abort_pending() noexcept;
  /// Bytes of scratch memory that `reduce_scatter` needs for a part of this many bytes.
  static size_t reduce_scatter_scratch(size_t part_bytes, size_t group) {
    return group > 1 ? part_bytes * group : 0;
  }
  /// `in` has a part of counts[i] elements for each rank of the group, contiguous, in rank order;
  /// out = reduction over the group of the parts for this rank, with the bits of `all_reduce`.
  void reduce_scatter(const void* in, void* out, std::span<const int64_t> counts, DType dtype,
                      Reduction reduction, std::span<const int> group, std::byte* scratch);
  /// Concatenates the parts of the group, `bytes[i]` from its i-th rank, into `out`.
  void all_gather(const void* in, void* out, std::span<const size_t> bytes,
                  std::span<const int> group);
  /// Sends `sent[i]` bytes of `in` to the i-th rank of the group, one after another, and puts the
  /// `received[i]` bytes from it into `out`, in the order of ranks. Ranks whose numbers differ are
  /// an error of the transport (kInternal).
  void all_to_all(const void* in, std::span<const size_t> sent, void* out,
                  std::span<const size_t> received, std::span<const int> group);
  /// Sends this rank's bytes to rank `root`, which receives `bytes[r]` from rank r into `out[r]`.
  void gather(std::span<const std::byte> in, std::span<const std::span<std::byte>> out, int root);

  /// A message from rank to rank: see Transport.
  void isend(int peer, uint32_t tag, std::span<const std::byte> bytes);
  void recv(int peer, uint32_t tag, std::span<std::byte> bytes);

  /// Sets the update that this rank computes, from 1, which its heartbeats report.
  void set_step(int64_t step);
  /// The calls of this rank since the last reset, by kind. The time includes waiting for others.
  const ExchangeCosts& costs();
  void reset_costs();
  /// Keeps a record of each exchange from now on, of at most kMaxRecords.
  void record_exchanges();
  std::vector<ExchangeRecord> take_records();
  static constexpr size_t kMaxRecords = size_t{1} << 20;
  uint64_t sent_bytes();  ///< in all kinds
  /// The costs of all ranks, in order. All of them must call it.
  std::vector<ExchangeCosts> gather_costs();

  /// Wakes up the other ranks with an error of kPeer. For ranks that cannot continue.
  void abort(const std::string& reason) noexcept;

 private:
  class Background;
  void start(std::function<void()> job);
  void scatter_now(const void* in, void* out, std::span<const int64_t> counts, DType dtype,
                   Reduction reduction, std::span<const int> group, std::byte* scratch);
  void gather_now(const void* in, void* out, std::span<const size_t> bytes,
                  std::span<const int> group);
  void reduce_now(std::span<const ReduceBuffer> tensors, DType dtype, Reduction reduction,
                  std::span<const int> group, std::byte* scratch);
  // The messages of the next exchange: each has a peer and at least one piece.
  void begin_messages();
  void send(int peer, std::span<const std::byte> piece);
  void receive(int peer, std::span<std::byte> piece);
  /// `calls`: 0 for a further part of a collective.
  void exchange(Exchange kind, int calls = 1);
  /// Adds a record that begins at `begin` and ends now.
  void note(ExchangeRecord record, int64_t begin);
  void reduce_parts(std::byte* parts, size_t stride, int64_t count, DType dtype,
                    Reduction reduction, size_t ranks) const;

  std::shared_ptr<Transport> transport_;  ///< null for a run of one process
  std::unique_ptr<Background> background_;
  int rank_ = 0, size_ = 1;
  ExchangeCosts costs_ = {};
  bool records_exchanges_ = false, in_background_ = false;
  std::vector<ExchangeRecord> exchange_records_;
  std::vector<int> all_ = {0};
  // Kept, so that a steady step allocates nothing.
  std::vector<std::span<const std::byte>> sent_pieces_;
  std::vector<std::span<std::byte>> received_pieces_;
  std::vector<std::pair<int, size_t>> sent_to_, received_from_;  ///< peer, number of pieces
  std::vector<Outgoing> sends_;
  std::vector<Incoming> receives_;
};

/// The communicator that collective operations of this thread use; null outside of scopes.
Communicator* current_communicator();

class CommunicatorScope {
 public:
  explicit CommunicatorScope(Communicator& communicator);
  ~CommunicatorScope();
  CommunicatorScope(const CommunicatorScope&) = delete;
  CommunicatorScope& operator=(const CommunicatorScope&) = delete;

 private:
  Communicator* previous_;
};

}  // namespace paddle::comm
