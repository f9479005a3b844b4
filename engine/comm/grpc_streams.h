#pragma once
// Streams of bytes over gRPC, with TLS 1.3 and certificates of both ends. gRPC is opened on first
// use (the module libpaddle_grpc.so), so that programs run where it is not installed.

#include <memory>
#include <optional>
#include <string>

#include "comm/streams.h"

namespace paddle::comm {

/// The certificates by which both ends know each other: texts in PEM.
struct TlsIdentity {
  std::string authority;         ///< certificates that have signed those of the other ends
  std::string certificate, key;  ///< of this end
  /// The name that certificates of listeners have; "": the host that is called.
  std::string listener_name = {};
};

/// As listen_for_socket_streams, with TLS if an identity is given. kDevice if the module cannot be
/// opened.
std::unique_ptr<StreamListener> listen_for_grpc_streams(const std::string& host, int port,
                                                        const std::optional<TlsIdentity>& identity);
std::unique_ptr<StreamCaller> call_grpc_streams(std::optional<TlsIdentity> identity);

}  // namespace paddle::comm
