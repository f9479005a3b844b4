#pragma once
// A transport between processes over TCP. Large messages between processes of one machine go by
// address (near_memory.h).

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "comm/rendezvous.h"
#include "comm/transport.h"

namespace paddle::comm {

struct TcpOptions {
  /// The longest wait for another rank in an exchange.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  /// How long a rank asks again and again for a message before it sleeps. To fall asleep and to
  /// wake up takes longer than most waits for a rank that has a core of its own.
  std::chrono::microseconds spin = {};
  bool leaves_time = false;  ///< see Transport
};

/// `peers`: connections to the other ranks, by rank, and `hosts` the addresses of all. Signs of
/// life go over the connection `rendezvous`; `host` is the rendezvous if it is in this process.
/// All ranks make theirs at the same time.
std::shared_ptr<Transport> make_tcp_transport(int rank, std::vector<Socket> peers,
                                              const std::vector<std::string>& hosts,
                                              const TcpOptions& options, Socket rendezvous,
                                              std::unique_ptr<RendezvousThread> host);

}  // namespace paddle::comm
