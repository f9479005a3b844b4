#pragma once
// Streams of bytes over TCP, without encryption.

#include <memory>
#include <string>

#include "comm/streams.h"

namespace paddle::comm {

/// Listens on a port of the interface that has the address of the host, 0 for a free one. kDevice
/// if the port is in use.
std::unique_ptr<StreamListener> listen_for_socket_streams(const std::string& host, int port);
std::unique_ptr<StreamCaller> call_socket_streams();

}  // namespace paddle::comm
