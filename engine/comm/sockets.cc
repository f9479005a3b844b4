#include "comm/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

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

std::string numeric(const in_addr& address) {
  char buffer[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, &address, buffer, sizeof buffer);
  return buffer;
}

/// Whether a socket is connected with itself: while no process listens on a port, the system may
/// choose it for this end.
bool is_own_end(const Socket& socket) {
  sockaddr_in here{}, there{};
  socklen_t size = sizeof here, other = sizeof there;
  ::getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&here), &size);
  ::getpeername(socket.descriptor(), reinterpret_cast<sockaddr*>(&there), &other);
  errno = 0;
  return here.sin_port == there.sin_port && here.sin_addr.s_addr == there.sin_addr.s_addr;
}

/// IPv4 addresses of a host.
std::vector<sockaddr_in> resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int status = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); status != 0)
    fail(ErrorCode::kPeer, "cannot find the host '", host, "': ", ::gai_strerror(status));
  std::vector<sockaddr_in> out;
  for (const addrinfo* each = found; each; each = each->ai_next) {
    sockaddr_in address{};
    std::memcpy(&address, each->ai_addr, sizeof address);
    address.sin_port = htons(static_cast<uint16_t>(port));
    out.push_back(address);
  }
  ::freeaddrinfo(found);
  return out;
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

std::string Socket::host() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size);
  return numeric(address.sin_addr);
}

bool Socket::wait_readable(std::chrono::milliseconds timeout) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd wait{descriptor_, POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (ready > 0) return true;
    if (ready == 0 && left.count() <= 0) return false;
  }
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
  constexpr size_t kMaxLineBytes = 1 << 16;
  std::string line;
  char c = 0;
  while (line.size() < kMaxLineBytes) {
    const ssize_t n = ::recv(descriptor_, &c, 1, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      fail(ErrorCode::kPeer, "the launcher or another rank ended while the ranks were connecting");
    if (c == '\n') return line;
    line += c;
  }
  fail(ErrorCode::kPeer, "another program listens at the rendezvous address of this run");
}

std::optional<std::string> Socket::receive_line(std::chrono::milliseconds timeout) const {
  constexpr size_t kMaxLineBytes = 4096;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::string line;
  while (line.size() < kMaxLineBytes) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (!wait_readable(std::max(left, std::chrono::milliseconds(0)))) return std::nullopt;
    char c = 0;
    const ssize_t n = ::recv(descriptor_, &c, 1, 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return std::nullopt;
    if (c == '\n') return line;
    line += c;
  }
  return std::nullopt;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host.starts_with("127.");
}

std::string seconds_text(std::chrono::milliseconds time) {
  return format_double(std::chrono::duration<double>(time).count());
}

Address parse_address(const std::string& text, const std::string& what) {
  constexpr int64_t kLastPort = 65535;
  const size_t colon = text.rfind(':');
  const auto port = parse_integer(colon == std::string::npos ? "" : text.substr(colon + 1));
  if (colon == 0 || !port || *port < 0 || *port > kLastPort)
    fail(ErrorCode::kUsage, what, ": expected host:port such as 127.0.0.1:4000, found '", text,
         "'");
  return {text.substr(0, colon), static_cast<int>(*port)};
}

Socket listen_on(const std::string& host, int port) {
  Socket socket = open_socket();
  const int on = 1;
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = resolve(host, port)[0];
  const int bound =
      ::bind(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  if (bound != 0 && errno == EADDRNOTAVAIL)
    fail(ErrorCode::kUsage, "cannot listen on ", host, ":", port, ": ", numeric(address.sin_addr),
         " is not an address of this machine");
  if (bound != 0 || ::listen(socket.descriptor(), SOMAXCONN) != 0)
    fail(ErrorCode::kDevice, "cannot listen on ", host, ":", port, ": ", std::strerror(errno));
  return socket;
}

std::string own_address(const std::string& host) {
  const sockaddr_in found = resolve(host, 0)[0];
  std::string address = numeric(found.sin_addr);
  if (is_loopback(host) || !is_loopback(address)) return address;
  std::vector<std::string> others;
  ifaddrs* interfaces = nullptr;
  if (::getifaddrs(&interfaces) == 0) {
    for (const ifaddrs* each = interfaces; each; each = each->ifa_next) {
      if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET) continue;
      sockaddr_in own{};
      std::memcpy(&own, each->ifa_addr, sizeof own);
      if (const std::string text = numeric(own.sin_addr); !is_loopback(text))
        others.push_back(text);
    }
    ::freeifaddrs(interfaces);
  }
  if (others.size() > 1)
    fail(ErrorCode::kUsage, "'", host, "' is ", address,
         " on this machine, which others cannot reach; give one of its addresses: ",
         paddle::join(others, ", "));
  return others.empty() ? address : others[0];
}

std::string address_towards(const std::string& host) {
  const Socket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  constexpr int kAnyPort = 9;  // nothing is sent
  try {
    for (const sockaddr_in& to : resolve(host, kAnyPort))
      if (::connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0)
        return socket.host();
  } catch (const Error&) {  // a name that only the program that connects knows
  }
  return "";
}

std::vector<std::string> numeric_addresses(const std::string& text) {
  const Address address = parse_address(text, "address");
  std::vector<std::string> out;
  for (const sockaddr_in& each : resolve(address.host, address.port))
    out.push_back(str(numeric(each.sin_addr), ":", address.port));
  return out;
}

Socket connect_to(const std::string& text, std::chrono::milliseconds timeout) {
  const Address address = parse_address(text, "address");
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    int reason = 0;
    for (const sockaddr_in& to : resolve(address.host, address.port)) {
      Socket socket = open_socket();
      if (::connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
          !is_own_end(socket))
        return socket;
      reason = errno ? errno : ECONNREFUSED;
    }
    if (std::chrono::steady_clock::now() >= deadline)
      fail(ErrorCode::kPeer, "cannot connect to ", text, ": ", std::strerror(reason));
    constexpr auto kMoment = std::chrono::milliseconds(50);
    std::this_thread::sleep_for(kMoment);
  }
}

}  // namespace paddle::comm
