#pragma once
// A transport over Gloo's connections. Gloo is opened on first use (the module libpaddle_gloo.so),
// so that programs run where it is not installed. Heartbeats go over the rendezvous as with TCP,
// so a lost rank is named.

#include <memory>
#include <vector>

#include "comm/process_transport.h"

namespace paddle::comm {

/// The transport of rank `rank`. The ranks exchange the addresses of Gloo's connections over
/// `peers`, by rank; `rendezvous` and `host` as in make_tcp_transport. kDevice if the module cannot
/// be opened, kPeer if a connection fails.
std::shared_ptr<Transport> make_gloo_transport(int rank, const std::vector<Socket>& peers,
                                               const ProcessOptions& options, Socket rendezvous,
                                               std::unique_ptr<RendezvousThread> host);

}  // namespace paddle::comm
