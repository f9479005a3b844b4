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
#include <optional>

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
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : static_cast<char>(c);
  });
  return text;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
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

/// The request line and the headers; nullopt if they are malformed.
std::optional<HttpRequest> parse_head(std::string_view head, bool& keep_alive) {
  HttpRequest out;
  const size_t line_end = head.find("\r\n");
  const std::string_view line = head.substr(0, line_end);
  const size_t first = line.find(' '), second = line.rfind(' ');
  if (first == std::string_view::npos || second <= first) return std::nullopt;
  const std::string_view version = line.substr(second + 1);
  if (!version.starts_with("HTTP/1.")) return std::nullopt;
  out.method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, second - first - 1);
  out.path = target.substr(0, target.find('?'));
  if (!out.path.starts_with('/')) return std::nullopt;
  for (size_t at = line_end; at != std::string_view::npos && at + 2 < head.size();) {
    const size_t begin = at + 2, end = head.find("\r\n", begin);
    const std::string_view field = head.substr(begin, end - begin);
    at = end;
    if (field.empty()) break;
    const size_t colon = field.find(':');
    if (colon == 0 || colon == std::string_view::npos || field[colon - 1] == ' ')
      return std::nullopt;
    const std::string name = lower(std::string(field.substr(0, colon)));
    // Two lengths are a way to smuggle requests.
    if (name == "content-length" && out.headers.contains(name)) return std::nullopt;
    out.headers[name] = trimmed(field.substr(colon + 1));
  }
  const std::string connection = lower(out.header("connection"));
  keep_alive = version == "HTTP/1.1" ? connection != "close" : connection == "keep-alive";
  return out;
}

std::optional<size_t> parse_length(const std::string& text) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A refusal of the request as such, after which the connection is closed.
bool refuse(int socket, int status, std::string_view message) {
  HttpResponse response(socket, false);
  response.send(status, "text/plain; charset=utf-8", str(message, "\n"));
  return false;
}

}  // namespace

std::string HttpRequest::header(const std::string& name) const {
  const auto it = headers.find(name);
  return it == headers.end() ? "" : it->second;
}

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
  write_all(body);
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
  acceptor_ = std::thread([this] { accept_all(); });
}

HttpServer::~HttpServer() {
  stop_accepting();
  {
    const std::lock_guard lock(mutex_);
    for (const auto& connection : connections_) shutdown(connection->socket, SHUT_RDWR);
  }
  for (const auto& connection : connections_) {
    connection->thread.join();
    close(connection->socket);
  }
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
    close(connection->socket);
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
    if (open_ >= limits_.connections) {
      refuse(socket, 503, "too many connections");
      close(socket);
      continue;
    }
    ++open_;
    const std::lock_guard lock(mutex_);
    connections_.push_back(std::make_unique<Connection>());
    Connection& connection = *connections_.back();
    connection.socket = socket;
    connection.thread = std::thread([this, &connection] { serve(connection); });
  }
}

void HttpServer::serve(Connection& connection) {
  std::string buffer;
  try {
    while (!stopping_ && serve_one(connection.socket, buffer)) {
    }
  } catch (const std::exception&) {
    // The connection is closed; nothing else is affected.
  }
  shutdown(connection.socket, SHUT_RDWR);
  --open_;
  connection.done = true;
}

/// False if the connection is to be closed.
bool HttpServer::serve_one(int socket, std::string& buffer) {
  const auto deadline = Clock::now() + std::chrono::seconds(limits_.read_seconds);
  size_t head_end;
  while ((head_end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (buffer.size() > limits_.head) return refuse(socket, 431, "the headers are too long");
    if (!receive(socket, buffer, deadline))
      return buffer.empty() ? false : refuse(socket, 408, "the request is incomplete");
  }
  if (head_end > limits_.head) return refuse(socket, 431, "the headers are too long");
  bool keep_alive = false;
  auto request = parse_head(std::string_view(buffer).substr(0, head_end + 2), keep_alive);
  if (!request) return refuse(socket, 400, "not an HTTP request");
  buffer.erase(0, head_end + 4);
  if (request->headers.contains("transfer-encoding"))
    return refuse(socket, 411, "the request needs a Content-Length");
  size_t length = 0;
  if (request->headers.contains("content-length")) {
    const auto parsed = parse_length(request->header("content-length"));
    if (!parsed) return refuse(socket, 400, "the Content-Length is not a number");
    length = *parsed;
  }
  if (length > limits_.body)
    return refuse(socket, 413, str("the request is over ", limits_.body, " bytes"));
  if (buffer.size() < length && lower(request->header("expect")) == "100-continue") {
    constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    if (send(socket, kContinue.data(), kContinue.size(), MSG_NOSIGNAL) < 0) return false;
  }
  while (buffer.size() < length)
    if (!receive(socket, buffer, deadline)) return refuse(socket, 408, "the request is incomplete");
  request->body = buffer.substr(0, length);
  buffer.erase(0, length);
  HttpResponse response(socket, keep_alive && !stopping_);
  handler_(*request, response);
  return response.may_continue();
}

}  // namespace paddle::serve
