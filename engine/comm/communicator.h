#pragma once
// The ranks of a run: their number, whether they are alive, and what they exchange. A run of one
// process has a communicator of size 1, so callers need no special case.
//
// Operations of programs use `collectives()`. The functions here are for what the ranks agree on
// between steps, in host memory. All ranks of a group must call the same ones in the same order.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/host_collectives.h"
#include "comm/messages.h"
#include "comm/transport.h"

namespace paddle::comm {

class Communicator {
 public:
  /// A run of one process.
  Communicator();
  explicit Communicator(std::shared_ptr<Transport> transport);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return messages_.rank(); }
  int size() const { return messages_.size(); }
  bool is_root() const { return rank() == 0; }
  const std::vector<int>& all() const { return all_; }

  HostCollectives& collectives() { return collectives_; }

  void barrier();
  /// Copies the bytes of rank `root` to all ranks.
  void broadcast(std::span<std::byte> bytes, int root = 0);
  /// One number of each rank, in order.
  std::vector<int64_t> gather_numbers(int64_t value);
  /// The largest of the ranks' values.
  int64_t max(int64_t value);
  /// Concatenates the parts of the group, `bytes[i]` from its i-th rank, into `out`.
  void all_gather(const void* in, void* out, std::span<const size_t> bytes,
                  std::span<const int> group);
  /// See Collectives.
  void all_to_all(const void* in, std::span<const size_t> sent, void* out,
                  std::span<const size_t> received, std::span<const int> group);
  /// Sends this rank's bytes to rank `root`, which receives `bytes[r]` from rank r into `out[r]`.
  void gather(std::span<const std::byte> in, std::span<const std::span<std::byte>> out, int root);
  /// A message from rank to rank: see Transport.
  void isend(int peer, uint32_t tag, std::span<const std::byte> bytes);
  void recv(int peer, uint32_t tag, std::span<std::byte> bytes);

  /// See Transport.
  bool can_overlap() const;
  /// Aborts the run if started collectives are pending, since their memory is about to be freed.
  /// For ranks that cannot continue; does nothing otherwise.
  void abort_pending() noexcept;
  /// Keeps a record of exchanges in the file RANK.flight of a folder, of a run of any size (see
  /// flight.h). `clock_offset`: of this rank, as clock_offsets gives it. kDevice if the file cannot
  /// be made; the run can continue without.
  void keep_record(const std::string& folder, int64_t clock_offset);
  /// Records the activity of the rank from now on, besides exchanges; "": it computes. No effect
  /// while started collectives run.
  void set_activity(const char* name);
  /// How the rank ends, for the record.
  void set_end(FlightEnd end);
  /// Sets the update that this rank computes, from 1, which its heartbeats report.
  void set_step(int64_t step);
  /// Wakes up the other ranks with an error of kPeer. For ranks that cannot continue.
  void abort(const std::string& reason) noexcept;

  /// The calls of this rank since the last reset, by kind. The time includes waiting for others.
  const ExchangeCosts& costs();
  void reset_costs();
  uint64_t sent_bytes();  ///< in all kinds
  /// The costs of all ranks, in order. All of them must call it.
  std::vector<ExchangeCosts> gather_costs();
  /// Keeps a record of each exchange from now on, of at most Messages::kMaxRecords.
  void record_exchanges();
  std::vector<ExchangeRecord> take_records();

 private:
  uint64_t enter(FlightRecorder& recorder, Exchange kind, size_t bytes) const;

  Messages messages_;
  HostCollectives collectives_;  ///< before `messages_` in destruction, as its thread uses them
  std::vector<int> all_;
};

/// The scope of an activity of a rank.
class ActivityScope {
 public:
  ActivityScope(Communicator& communicator, const char* name) : communicator_(communicator) {
    communicator_.set_activity(name);
  }
  ~ActivityScope() { communicator_.set_activity(""); }
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

 private:
  Communicator& communicator_;
};

}  // namespace paddle::comm
