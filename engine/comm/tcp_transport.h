#pragma once
// A transport between processes over TCP. Large messages between processes of one machine go by
// address (shared_memory_transport.h).

#include <memory>
#include <string>
#include <vector>

#include "comm/process_transport.h"

namespace paddle::comm {

/// `peers`: connections to the other ranks, by rank, and `hosts` the addresses of all. Heartbeats
/// go over the connection `rendezvous`; `host` is the rendezvous if it is in this process.
/// All ranks make theirs at the same time.
std::shared_ptr<Transport> make_tcp_transport(int rank, std::vector<Socket> peers,
                                              const std::vector<std::string>& hosts,
                                              const ProcessOptions& options, Socket rendezvous,
                                              std::unique_ptr<RendezvousThread> host);

}  // namespace paddle::comm
