#pragma once
// Connections of many peers to a listener: bytes in both directions after both ends have shown that
// they know the token of the run (comm/handshake.h). Peers may come back. Nothing here waits for a
// peer: one that is slow, silent or hostile costs no more than its own connection.

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/sockets.h"

namespace paddle::comm {

/// The listening end. One thread uses it.
class ChannelListener {
 public:
  /// Listens on a port of the interface that has the address of the host, 0 for a free one.
  /// kDevice if the port is in use. Connections without a proof of the token end after
  /// `handshake_timeout`.
  ChannelListener(const std::string& host, int port, std::string token,
                  std::chrono::milliseconds handshake_timeout = std::chrono::seconds(5));
  ~ChannelListener();
  ChannelListener(const ChannelListener&) = delete;
  ChannelListener& operator=(const ChannelListener&) = delete;

  std::string address() const;

  struct Event {
    enum class Kind { kConnected, kReceived, kClosed };
    Kind kind = Kind::kReceived;
    int peer = 0;                           ///< of the connection; never used again
    std::string request = {};               ///< of kConnected: what the caller has asked for
    std::span<const std::byte> bytes = {};  ///< of kReceived; valid until the next call
  };
  /// Waits for something to happen, up to the timeout; the events.
  std::vector<Event> wait(std::chrono::milliseconds timeout);
  /// Sends bytes, at once or when the peer takes them. Nothing if its connection is closed.
  void send(int peer, std::vector<std::byte> bytes);
  /// Connections.
  size_t peers() const { return peers_.size(); }
  /// Closes a connection after what was sent.
  void close(int peer);

  /// Connections that have not shown that they know the token; for more, the oldest are closed.
  static constexpr size_t kMaxPending = 64;
  /// Connections that have.
  static constexpr size_t kMaxPeers = 4096;

 private:
  struct Peer;
  using Clock = std::chrono::steady_clock;
  void accept_callers();
  /// Handles lines of the handshake; false when the connection must end.
  bool handle_lines(int number, Peer& peer, std::vector<Event>& events);
  void receive(int number, Peer& peer, std::vector<Event>& events);
  static bool send_some(Peer& peer);

  Socket listener_;
  std::string host_, token_;
  std::chrono::milliseconds handshake_timeout_;
  std::map<int, std::unique_ptr<Peer>> peers_;
  int next_ = 1;
};

/// The calling end.
class Channel {
 public:
  /// Connects to "host:port" and asks for admission. kPeer if that fails within the timeout.
  Channel(const std::string& address, const std::string& token, const std::string& request,
          std::chrono::milliseconds timeout);

  int descriptor() const { return socket_.descriptor(); }
  /// Sends all bytes; false if the connection is lost or the peer takes nothing for so long.
  bool send(std::span<const std::byte> bytes, std::chrono::milliseconds timeout);
  /// The bytes that are there, into `to`; nothing if the connection is lost.
  std::optional<size_t> receive(std::span<std::byte> to);

 private:
  Socket socket_;
};

}  // namespace paddle::comm
