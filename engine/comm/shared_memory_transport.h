#pragma once
// Messages between processes of one machine by cross-memory attach (process_vm_readv): the sender
// passes addresses, and the receiver copies the bytes once from the memory of the sender.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/sockets.h"

namespace paddle::comm {

/// A piece of memory of another process.
struct RemotePiece {
  uint64_t address = 0, size = 0;
};

class SharedMemoryTransport {
 public:
  /// Finds out which ranks may read the memory of which others; `hosts` are the addresses of all.
  /// Collective, before the first message. With PADDLE_TRANSPORT=tcp none may.
  void open(int rank, const std::vector<Socket>& peers, const std::vector<std::string>& hosts);
  /// Whether a peer reads the memory of this process.
  bool is_read_by(int peer) const { return reads_here_[static_cast<size_t>(peer)]; }
  /// Copies pieces of a peer's memory into pieces of the same size together; false, with errno, if
  /// that is not possible.
  bool copy(int peer, std::span<const RemotePiece> from,
            std::span<const std::span<std::byte>> to) const;

 private:
  std::vector<bool> reads_here_;
  std::vector<pid_t> processes_;
};

}  // namespace paddle::comm
