#pragma once
// A transport over MPI, for networks that MPI drives better than TCP. MPI is opened on first use
// (the module libpaddle_mpi.so), so that programs run where it is not installed. Signs of life go
// over the rendezvous as with TCP, so a lost rank is named.

#include <chrono>
#include <memory>

#include "comm/rendezvous.h"
#include "comm/transport.h"

namespace paddle::comm {

struct MpiOptions {
  std::chrono::milliseconds timeout = std::chrono::minutes(30);  ///< see TcpOptions
  std::chrono::microseconds spin = {};
  bool leaves_time = false;
};

/// The transport of rank `rank` of `size`. `rendezvous` and `host` as in make_tcp_transport.
/// kDevice if the module cannot be opened, kUsage if MPI has started other ranks.
std::shared_ptr<Transport> make_mpi_transport(int rank, int size, const MpiOptions& options,
                                              Socket rendezvous,
                                              std::unique_ptr<RendezvousThread> host);

}  // namespace paddle::comm
