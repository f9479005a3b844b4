#pragma once
// TCP sockets that close themselves, with the few calls that the rendezvous needs.

#include <cstdint>
#include <optional>
#include <string>

namespace paddle::comm {

/// More ranks than any machine starts: numbers beyond are mistakes.
inline constexpr int kMostRanks = 1024;

/// A whole decimal number; nullopt for anything else.
std::optional<int64_t> parse_integer(const std::string& text);

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;

  int descriptor() const { return descriptor_; }
  int release();
  void close() noexcept;
  void set_blocking(bool blocking) const;
  /// No delay for small messages, large buffers, and calls that return at once.
  void prepare_for_messages() const;
  int port() const;  ///< that it is bound to
  Socket accept() const;
  void send_line(const std::string& line) const;
  std::string receive_line() const;  ///< without its end; kPeer if the other side closes

 private:
  int descriptor_ = -1;
};

/// Listens on a free port of the loopback interface.
Socket listen_on_loopback();
/// Connects to "host:port"; kPeer if nobody listens there.
Socket connect_to(const std::string& address);

}  // namespace paddle::comm
