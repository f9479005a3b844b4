#pragma once
// Servers and workers over channels: sockets, or gRPC with TLS.

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "comm/channel.h"
#include "comm/grpc_streams.h"
#include "ps/client.h"

namespace paddle::ps {

/// The carrier of frames. Both ends must agree.
struct Wire {
  bool is_grpc = false;  ///< else sockets
  /// Of gRPC; nothing: frames are not encrypted.
  std::optional<comm::TlsIdentity> identity = {};
};

/// A server with its connections.
class SocketServer {
 public:
  /// Listens at once. `token`: the shared secret of the run.
  SocketServer(Server& server, const std::string& host, int port, const std::string& token,
               const Wire& wire = {});

  std::string address() const { return listener_.address(); }
  /// Answers workers until `ends`, which is asked every tenth of a second, or, unless `stays`,
  /// until they have ended the run. Errors other than of connections end it, when workers know of
  /// them.
  void run(const std::function<bool()>& ends, bool stays);

 private:
  struct Peer {
    int worker = -1;
    FrameReader reader;
  };
  void handle(const comm::ChannelListener::Event& event, Lane::Answers& answers);
  void reject(int peer, const Error& error);
  void send(Lane::Answers& answers);

  Server& server_;
  comm::ChannelListener listener_;
  std::map<int, Peer> peers_;        ///< by connection
  std::map<uint32_t, int> workers_;  ///< their connections
};

struct SocketLinkOptions {
  /// The address of a server now; "" if it is not known.
  std::function<std::string(int server)> address = {};
  std::string token = {};
  Wire wire = {};
  /// The longest wait for a server to come, or to take what is sent.
  std::chrono::milliseconds timeout = std::chrono::minutes(2);
};

/// A worker's connections to the servers.
std::unique_ptr<Link> socket_link(SocketLinkOptions options);

}  // namespace paddle::ps
