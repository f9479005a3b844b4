#pragma once
// Connections of many peers to a listener: bytes in both directions after both ends have shown that
// they know the token of the run (comm/handshake.h). Peers may come back. The listener waits for no
// peer: one that is slow, silent or hostile costs no more than its own connection.

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/handshake.h"
#include "comm/streams.h"

namespace paddle::comm {

/// The listening end. One thread uses it.
class ChannelListener {
 public:
  /// Connections without a proof of the token end after `handshake_timeout`.
  ChannelListener(std::unique_ptr<StreamListener> streams, std::string token,
                  std::chrono::milliseconds handshake_timeout = std::chrono::seconds(5));

  std::string address() const { return streams_->address(); }

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
  void send(int peer, std::vector<std::byte> bytes) { streams_->send(peer, std::move(bytes)); }
  /// Connections.
  size_t peers() const { return peers_.size(); }
  /// Closes a connection after what was sent.
  void close(int peer);

  /// Connections that have not shown that they know the token; for more, the oldest are closed.
  static constexpr size_t kMaxPending = 64;
  /// Connections that have.
  static constexpr size_t kMaxPeers = 4096;

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    Challenge challenge;
    bool is_admitted = false, closes = false, is_aborted = false;
    std::string line;
    Clock::time_point since = Clock::now();
  };
  void abort(int number, Peer& peer);
  void abort_late_peers();
  void begin(int number);
  void send_line(int peer, const std::string& line);
  /// Handles lines of the handshake; the request of a caller that is admitted now.
  std::optional<std::string> receive_line(int number, Peer& peer, std::span<const std::byte> bytes);

  std::unique_ptr<StreamListener> streams_;
  std::string token_;
  std::chrono::milliseconds handshake_timeout_;
  std::map<int, Peer> peers_;
};

/// The calling end, with connections to several listeners. One thread uses it.
class ChannelCaller {
 public:
  ChannelCaller(std::unique_ptr<StreamCaller> streams, std::string token)
      : streams_(std::move(streams)), token_(std::move(token)) {}

  /// Connects to "host:port" and asks for admission; the connection has the number `peer`, in place
  /// of one before. kPeer if that fails within the timeout.
  void connect(int peer, const std::string& address, const std::string& request,
               std::chrono::milliseconds timeout);
  /// Sends all bytes; false if the connection is lost or the peer takes nothing for so long.
  bool send(int peer, std::span<const std::byte> bytes, std::chrono::milliseconds timeout) {
    return streams_->send(peer, bytes, timeout);
  }
  /// Bytes that have arrived, and connections that are lost (kClosed).
  std::vector<StreamEvent> wait(std::chrono::milliseconds timeout);
  void close(int peer);

 private:
  /// An event of another connection, or bytes that have come with the end of a handshake.
  struct Held {
    StreamEvent event;
    std::vector<std::byte> bytes;
  };
  void hold(const StreamEvent& event);
  /// The next line of a connection, which is removed from `received`; nothing if the connection is
  /// lost or it does not come in time.
  std::optional<std::string> next_line(int peer, std::string& received,
                                       std::chrono::steady_clock::time_point deadline);

  std::unique_ptr<StreamCaller> streams_;
  std::string token_;
  std::vector<Held> held_, handed_out_;
};

}  // namespace paddle::comm
