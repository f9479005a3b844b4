#include "serve/http.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/text.h"

namespace paddle::serve {

namespace {

using Clock = std::chrono::steady_clock;

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

/// Waits for an event; false after the deadline.
bool wait_for(int socket, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd p{socket, events, 0};
    const int found = poll(&p, 1, static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
  }
}

/// Appends what has arrived; false at the end of the connection or after the deadline.
bool receive(int socket, std::string& buffer, Clock::time_point deadline) {
  char part[16384];
  for (;;) {
    const ssize_t n = recv(socket, part, sizeof part, MSG_DONTWAIT);
    if (n > 0) {
      buffer.append(part, static_cast<size_t>(n));
      return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return false;
    if (!wait_for(socket, POLLIN, deadline)) return false;
  }
}

/// A malformed request, after which the connection is closed.
bool reject_connection(int socket, int status, std::string_view message) {
  HttpResponse response(socket, false);
  response.send(status, "text/plain; charset=utf-8", str(message, "\n"));
  return false;
}

/// Reads and drops what the client still sends, for a moment: closing a connection with bytes that
/// are not read would reset it, perhaps before the client reads its answer, and without reading
/// a client that sends all of a request before it reads would wait.
void drain(int socket, const std::atomic<bool>& stopping) {
  constexpr auto kMoment = std::chrono::seconds(1);
  shutdown(socket, SHUT_WR);
  const auto deadline = Clock::now() + kMoment;
  std::string dropped;
  while (!stopping && Clock::now() < deadline && receive(socket, dropped, deadline))
    dropped.clear();
}

bool is_loopback_address(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == 127;
  return address.ss_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

}  // namespace

void HttpResponse::write_all(std::string_view data) {
  while (!data.empty() && !failed_) {
    const ssize_t n = ::send(socket_, data.data(), data.size(), MSG_NOSIGNAL);
    if (n > 0)
      data.remove_prefix(static_cast<size_t>(n));
    else if (errno != EINTR)
      failed_ = true;
  }
}

void HttpResponse::head(int status, std::string_view type, const HttpHeaders& headers) {
  std::string out =
      str("HTTP/1.1 ", status, " ", reason_of(status), "\r\nContent-Type: ", type, "\r\n");
  for (const auto& [name, value] : headers) out += str(name, ": ", value, "\r\n");
  if (!keep_alive_) out += "Connection: close\r\n";
  out += "\r\n";
  begun_ = true;
  write_all(out);
}

void HttpResponse::send(int status, std::string_view type, std::string_view body,
                        const HttpHeaders& headers) {
  HttpHeaders all = headers;
  all.emplace_back("Content-Length", str(body.size()));
  head(status, type, all);
  if (!head_only_) write_all(body);
  complete_ = true;
}

void HttpResponse::begin(int status, std::string_view type) {
  head(status, type, {{"Transfer-Encoding", "chunked"}, {"Cache-Control", "no-cache"}});
}

void HttpResponse::write(std::string_view chunk) {
  if (chunk.empty()) return;
  char size[20];
  const auto [end, error] = std::to_chars(size, size + sizeof size, chunk.size(), 16);
  std::string out(size, end);
  out += "\r\n";
  out += chunk;
  out += "\r\n";
  write_all(out);
}

void HttpResponse::end() {
  write_all("0\r\n\r\n");
  complete_ = true;
}

bool HttpResponse::is_connected() {
  if (failed_) return false;
  char byte;
  const ssize_t n = recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

HttpServer::HttpServer(const std::string& host, int port, HttpHandler handler, HttpLimits limits)
    : handler_(std::move(handler)), limits_(limits) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const std::string service = str(port);
  if (const int error = getaddrinfo(host.c_str(), service.c_str(), &hints, &found); error != 0)
    fail(ErrorCode::kUsage, "cannot listen on '", host, "': ", gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  listener_ = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (listener_ < 0 || bind(listener_, found->ai_addr, found->ai_addrlen) != 0 ||
      listen(listener_, 256) != 0 || pipe2(wake_, O_CLOEXEC) != 0) {
    const std::string problem = std::strerror(errno);
    if (listener_ >= 0) close(listener_);
    fail(ErrorCode::kUsage, "cannot listen on ", host, ":", port, ": ", problem);
  }
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                              : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
  loopback_ = is_loopback_address(address);
  acceptor_ = std::thread([this] { accept_all(); });
}

HttpServer::~HttpServer() {
  stop_accepting();
  {
    const std::lock_guard lock(mutex_);
    for (const auto& connection : connections_)
      if (connection->socket >= 0) shutdown(connection->socket, SHUT_RDWR);
  }
  for (const auto& connection : connections_) connection->thread.join();
  close(wake_[0]);
  close(wake_[1]);
}

void HttpServer::stop_accepting() {
  if (stopping_.exchange(true)) return;
  [[maybe_unused]] const ssize_t written = ::write(wake_[1], "x", 1);
  acceptor_.join();
  close(listener_);
}

/// Joins the threads of connections that are done.
void HttpServer::collect() {
  const std::lock_guard lock(mutex_);
  std::erase_if(connections_, [](const std::unique_ptr<Connection>& connection) {
    if (!connection->done) return false;
    connection->thread.join();
    return true;
  });
}

void HttpServer::accept_all() {
  for (;;) {
    pollfd p[2] = {{listener_, POLLIN, 0}, {wake_[0], POLLIN, 0}};
    if (poll(p, 2, -1) < 0 && errno != EINTR) return;
    if (p[1].revents != 0) return;
    if (p[0].revents == 0) continue;
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    collect();
    if (socket < 0) {
      // Out of descriptors: wait for a connection to end.
      if (errno == EMFILE || errno == ENFILE)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    const int yes = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const timeval write_time{limits_.write_seconds, 0};
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &write_time, sizeof write_time);
    constexpr int kRejectedAtATime = 64;
    const int64_t open_now = open_;
    if (open_now >= limits_.connections + kRejectedAtATime)
      close(socket);
    else
      open(socket, open_now >= limits_.connections);
  }
}

void HttpServer::open(int socket, bool rejected) {
  ++open_;
  const std::lock_guard lock(mutex_);
  connections_.push_back(std::make_unique<Connection>());
  Connection& connection = *connections_.back();
  connection.socket = socket;
  connection.rejected = rejected;
  connection.thread = std::thread([this, &connection] { serve(connection); });
}

void HttpServer::serve(Connection& connection) {
  std::string buffer;
  try {
    if (connection.rejected) reject_connection(connection.socket, 503, "too many connections");
    while (!connection.rejected && !stopping_ && serve_one(connection.socket, buffer)) {
    }
    drain(connection.socket, stopping_);
  } catch (const std::exception&) {
    // The connection is closed; nothing else is affected.
  }
  --open_;
  const std::lock_guard lock(mutex_);
  close(connection.socket);
  connection.socket = -1;
  connection.done = true;
}

/// False if the connection is to be closed.
bool HttpServer::serve_one(int socket, std::string& buffer) {
  const auto deadline = Clock::now() + std::chrono::seconds(limits_.read_seconds);
  HttpReader reader(limits_);
  try {
    while (!reader.take(buffer)) {
      if (reader.awaits_continue() && buffer.empty()) {
        constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
        if (send(socket, kContinue.data(), kContinue.size(), MSG_NOSIGNAL) < 0) return false;
      }
      reader.continued();
      if (!receive(socket, buffer, deadline))
        return !reader.has_begun() && buffer.empty()
                   ? false
                   : reject_connection(socket, 408, "the request is incomplete");
    }
  } catch (const HttpError& error) {
    return reject_connection(socket, error.status, error.message);
  }
  HttpRequest& request = reader.request();
  request.on_loopback = loopback_;
  HttpResponse response(socket, reader.keep_alive() && !stopping_, request.method == "HEAD");
  handler_(request, response);
  return response.may_continue();
}

}  // namespace paddle::serve
