#pragma once
// Streams of bytes between an end that listens and many that call. Sockets make them
// (socket_streams.h), and gRPC with TLS (grpc_streams.h). Peers are authenticated by channel.h.
// Only `connect` and a full `send` wait for a peer.

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace paddle::comm {

struct StreamEvent {
  enum class Kind { kConnected, kReceived, kClosed };
  Kind kind = Kind::kReceived;
  int peer = 0;                           ///< of the stream
  std::span<const std::byte> bytes = {};  ///< of kReceived; valid until the next wait
};

/// The listening end. One thread uses it.
class StreamListener {
 public:
  StreamListener() = default;
  virtual ~StreamListener() = default;
  StreamListener(const StreamListener&) = delete;
  StreamListener& operator=(const StreamListener&) = delete;

  virtual std::string address() const = 0;  ///< "host:port"
  /// Waits for something to happen, up to the timeout. A stream ends with one kClosed; numbers of
  /// peers are never used again.
  virtual std::vector<StreamEvent> wait(std::chrono::milliseconds timeout) = 0;
  /// Sends bytes, at once or when the peer takes them. Nothing if the stream has ended. From a peer
  /// that leaves more than kMaxUnsent untaken, nothing more is read.
  virtual void send(int peer, std::vector<std::byte> bytes) = 0;
  /// Reads no more, and ends the stream after what was sent.
  virtual void close(int peer) = 0;
  /// Ends the stream now.
  virtual void abort(int peer) = 0;

  static constexpr size_t kMaxUnsent = size_t{64} << 20;
};

/// The calling end, with streams to several listeners. One thread uses it.
class StreamCaller {
 public:
  StreamCaller() = default;
  virtual ~StreamCaller() = default;
  StreamCaller(const StreamCaller&) = delete;
  StreamCaller& operator=(const StreamCaller&) = delete;

  /// Makes a stream to "host:port" that has the number `peer`, in place of one before. kPeer, with
  /// the cause, if that fails within the timeout.
  virtual void connect(int peer, const std::string& address, std::chrono::milliseconds timeout) = 0;
  /// Sends bytes; false if the stream has ended, or the peer takes nothing for so long.
  virtual bool send(int peer, std::span<const std::byte> bytes,
                    std::chrono::milliseconds timeout) = 0;
  /// Bytes that have arrived, and streams that have ended.
  virtual std::vector<StreamEvent> wait(std::chrono::milliseconds timeout) = 0;
  /// Why a stream has ended, as far as that is known; "".
  virtual std::string cause(int peer) const = 0;
  /// Ends the stream, without an event.
  virtual void close(int peer) = 0;
};

}  // namespace paddle::comm
