#pragma once
// TCP sockets that close themselves, with the few calls that the rendezvous needs.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace paddle::comm {

/// More ranks than any machine starts: numbers beyond are mistakes.
inline constexpr int kMaxRanks = 1024;

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
  int port() const;          ///< that it is bound to
  std::string host() const;  ///< numeric address of this end
  Socket accept() const;
  /// Waits for something to read, or for a caller; false after the timeout.
  bool wait_readable(std::chrono::milliseconds timeout) const;
  void send_line(const std::string& line) const;
  std::string receive_line() const;  ///< without its end; kPeer if the other side closes
  /// The same; nullopt if the other side closes, or has not sent a line in time.
  std::optional<std::string> receive_line(std::chrono::milliseconds timeout) const;

 private:
  int descriptor_ = -1;
};

/// "host:port" in parts; kUsage, with what `what` names, for anything else.
struct Address {
  std::string host;
  int port = 0;
};
Address parse_address(const std::string& text, const std::string& what);
bool is_loopback(const std::string& host);
/// "10" or "0.5", for messages.
std::string seconds_text(std::chrono::milliseconds time);

/// Listens on a port of the interface that has this address, 0 for a free one; kUsage if no
/// interface of this machine has it, kDevice if another program has the port.
Socket listen_on(const std::string& host, int port);
/// The numeric address of an interface of this machine that others reach by the name `host`. Names
/// of this machine may mean a loopback address here; then it is that of its only other interface.
/// kUsage if there are several.
std::string own_address(const std::string& host);
/// The numeric address of the interface that reaches another machine; "" if there is none.
std::string address_towards(const std::string& host);
/// The "host:port" of each numeric address of a "host:port". kPeer if the host is unknown.
std::vector<std::string> numeric_addresses(const std::string& address);
/// Connects to "host:port"; kPeer if there is no listener within the timeout.
Socket connect_to(const std::string& address, std::chrono::milliseconds timeout = {});

}  // namespace paddle::comm
