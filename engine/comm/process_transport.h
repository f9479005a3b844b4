#pragma once
// The common base of transports between processes: rank and size, options, and heartbeats.

#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "comm/heartbeat.h"
#include "comm/rendezvous.h"
#include "comm/transport.h"

namespace paddle::comm {

struct ProcessOptions {
  /// The longest wait for another rank in an exchange.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  /// The longest wait for a connection.
  std::chrono::milliseconds join_timeout = std::chrono::minutes(2);
  /// How long a rank spins for a message before it blocks. To fall asleep and to
  /// wake up takes longer than most waits for a rank that has a core of its own.
  std::chrono::microseconds spin = {};
  bool can_overlap = false;        ///< see Transport
  std::vector<int> machines = {};  ///< of each rank, see Transport; empty: all on one
};

class ProcessTransport : public Transport {
 public:
  /// As Liveness::start.
  void start(Socket rendezvous, std::unique_ptr<RendezvousThread> host) {
    life_.start(std::move(rendezvous), std::move(host), on_lost());
  }

  int rank() const final { return rank_; }
  int size() const final { return size_; }
  void set_step(int64_t step) override { life_.set_step(step); }
  void set_record_folder(const std::string& folder) override { life_.set_record_folder(folder); }
  bool can_overlap() const override { return options_.can_overlap; }
  int machine(int rank) const final {
    return options_.machines.empty() ? 0 : options_.machines[static_cast<size_t>(rank)];
  }

 protected:
  ProcessTransport(int rank, int size, const ProcessOptions& options)
      : rank_(rank), size_(size), options_(options), life_(options.timeout) {}
  /// The function that another thread calls when the run has lost a rank; see Liveness::start.
  virtual std::function<void()> on_lost() { return {}; }

  const int rank_, size_;
  const ProcessOptions options_;
  Liveness life_;  ///< destructors stop it before what it wakes up ends
};

}  // namespace paddle::comm
