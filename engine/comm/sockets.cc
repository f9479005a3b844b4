#include "comm/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace paddle::comm {
namespace {

Socket open_socket() {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.descriptor() < 0)
    fail(ErrorCode::kDevice, "cannot open a socket: ", std::strerror(errno));
  return socket;
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

std::optional<int64_t> parse_integer(const std::string& text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

Socket& Socket::operator=(Socket&& other) noexcept {
  close();
  descriptor_ = other.release();
  return *this;
}

int Socket::release() { return std::exchange(descriptor_, -1); }

void Socket::close() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

void Socket::set_blocking(bool blocking) const {
  const int flags = ::fcntl(descriptor_, F_GETFL);
  ::fcntl(descriptor_, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

void Socket::prepare_for_messages() const {
  const int on = 1, bytes = 4 << 20;
  ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(descriptor_, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  set_blocking(false);
}

int Socket::port() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

Socket Socket::accept() const {
  while (true) {
    const int caller = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
    if (caller >= 0) return Socket(caller);
    if (errno != EINTR && errno != ECONNABORTED)
      fail(ErrorCode::kPeer, "waiting for other ranks: ", std::strerror(errno));
  }
}

void Socket::send_line(const std::string& line) const {
  const std::string text = line + "\n";
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::send(descriptor_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorCode::kPeer, "cannot reach another rank: ", std::strerror(errno));
    done += static_cast<size_t>(n);
  }
}

std::string Socket::receive_line() const {
  constexpr size_t kLongest = 1 << 16;
  std::string line;
  char c = 0;
  while (line.size() < kLongest) {
    const ssize_t n = ::recv(descriptor_, &c, 1, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      fail(ErrorCode::kPeer, "the launcher or another rank ended while the ranks were connecting");
    if (c == '\n') return line;
    line += c;
  }
  fail(ErrorCode::kPeer, "another program answers where the ranks of this run connect");
}

Socket listen_on_loopback() {
  Socket socket = open_socket();
  sockaddr_in address = loopback(0);
  if (::bind(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.descriptor(), SOMAXCONN) != 0)
    fail(ErrorCode::kDevice, "cannot listen on the loopback interface: ", std::strerror(errno));
  return socket;
}

Socket connect_to(const std::string& address) {
  const size_t colon = address.rfind(':');
  const auto port = parse_integer(address.substr(colon + 1));
  sockaddr_in to = loopback(static_cast<int>(port.value_or(0)));
  if (colon == std::string::npos || !port ||
      ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr) != 1)
    fail(ErrorCode::kUsage, "expected an address such as 127.0.0.1:4000, found '", address, "'");
  Socket socket = open_socket();
  while (::connect(socket.descriptor(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
    if (errno != EINTR)
      fail(ErrorCode::kPeer, "cannot connect to ", address, ": ", std::strerror(errno));
  return socket;
}

}  // namespace paddle::comm
