#pragma once
// Messages between the ranks of a run. A transport moves bytes between pairs of ranks and nothing
// else; the collectives (communicator.h) are written once above it, so the numbers that they
// compute do not depend on the transport.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace paddle::comm {

/// A message to a peer, gathered from several buffers.
struct Outgoing {
  int peer = 0;
  std::span<const std::span<const std::byte>> pieces;
};

/// A message from a peer, of as many bytes as it sends, in any pieces.
struct Incoming {
  int peer = 0;
  std::span<const std::span<std::byte>> pieces;
};

template <class Byte>
size_t size_of(std::span<const std::span<Byte>> pieces) {
  size_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.size();
  return bytes;
}

/// The collective that an exchange belongs to. Both ends compare it, so ranks whose programs differ
/// stop with a message instead of mixing up their data.
enum class Exchange : uint32_t {
  kBarrier,
  kBroadcast,
  kAllReduce,
  kAllGather,
  kGather,
  kReduceScatter,
  kAllToAll,
  kPermute,
  kMessage,  ///< of `isend`
};
inline constexpr size_t kExchangeKinds = static_cast<size_t>(Exchange::kMessage) + 1;
const char* text(Exchange kind);

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sends and receives these messages, at most one in each direction for each peer, and returns
  /// when all of them have arrived. kPeer if a peer is gone or the run was aborted.
  virtual void exchange(Exchange kind, std::span<const Outgoing> sends,
                        std::span<const Incoming> receives) = 0;
  /// Sends a message to a peer and returns at once; the bytes are copied. The peer may `recv`
  /// messages of different tags in any order, and those of one tag in the order of sending.
  virtual void isend(int peer, uint32_t tag, std::span<const std::byte> bytes) = 0;
  /// Waits for a message of a peer and copies it. kPeer as above, kInternal for another size.
  virtual void recv(int peer, uint32_t tag, std::span<std::byte> bytes) = 0;
  /// A number of the machine that a rank is on, the same for all ranks there.
  virtual int machine(int /*rank*/) const { return 0; }
  /// Whether exchanges take little of the time of the cores that compute: over a network, or where
  /// ranks have cores to spare.
  virtual bool can_overlap() const { return false; }
  /// Sets the update that this rank computes, from 1, for heartbeats.
  virtual void set_step(int64_t) {}
  /// Tells the launcher where ranks keep their records of exchanges.
  virtual void set_record_folder(const std::string& /*folder*/) {}
  /// Wakes up all ranks that wait for this one, with kPeer and `reason`.
  virtual void abort(const std::string& reason) noexcept = 0;
};

/// kInternal: the ranks of an exchange do not run the same program.
[[noreturn]] void reject_mismatch(int rank, Exchange kind, uint64_t bytes, int peer,
                                  Exchange peer_kind, uint64_t peer_bytes);

}  // namespace paddle::comm
