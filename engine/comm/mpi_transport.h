#pragma once
// A transport over MPI, for networks that MPI drives better than TCP. MPI is opened on first use
// (the module libpaddle_mpi.so), so that programs run where it is not installed. Heartbeats go
// over the rendezvous as with TCP, so a lost rank is named.

#include <memory>

#include "comm/process_transport.h"

namespace paddle::comm {

/// The transport of rank `rank` of `size`. `rendezvous` and `host` as in make_tcp_transport.
/// kDevice if the module cannot be opened, kUsage if MPI has started other ranks.
std::shared_ptr<Transport> make_mpi_transport(int rank, int size, const ProcessOptions& options,
                                              Socket rendezvous,
                                              std::unique_ptr<RendezvousThread> host);

}  // namespace paddle::comm
