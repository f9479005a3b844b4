#pragma once
// The transports between processes by the names that PADDLE_TRANSPORT uses.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/kind_options.h"
#include "base/registry.h"
#include "comm/process_transport.h"
#include "comm/rendezvous.h"
#include "comm/sockets.h"

namespace paddle::comm {

/// A rank that has joined its run, with a connection to each of the others.
struct JoinedRank {
  int rank = 0, size = 1;
  std::vector<Socket> peers = {};       ///< by rank; the own one is not connected
  std::vector<std::string> hosts = {};  ///< of the ranks
  ProcessOptions options = {};
  Socket rendezvous = {};
  std::unique_ptr<RendezvousThread> host = {};  ///< the rendezvous if it is in this process
  KindOptions kind_options = {};                ///< of the kind of transport
};

struct TransportKind {
  std::string name = {};
  std::string doc = {};
  /// Makes the transport of a rank, over the connections or instead of them. kDevice or kUsage if
  /// that is impossible here.
  std::function<std::shared_ptr<Transport>(JoinedRank joined)> open = {};
  std::vector<KindKey> keys = {};  ///< in a config, besides `kind`
};

/// "auto", "tcp", "gloo" and "mpi"; more may be added while the program runs, before it joins a
/// run.
Registry<TransportKind>& transport_kinds();

}  // namespace paddle::comm
