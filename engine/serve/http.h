#pragma once
// A small HTTP/1.1 server: a thread for each connection, whole requests in memory, responses at
// once or in chunks, and a test whether the client is still there.

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "serve/http_reader.h"

namespace paddle::serve {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// The response to one request, written by its handler.
class HttpResponse {
 public:
  /// `head_only`: the answer to a HEAD request, which has the headers of a GET and no body.
  HttpResponse(int socket, bool keep_alive, bool head_only = false)
      : socket_(socket), keep_alive_(keep_alive), head_only_(head_only) {}

  void send(int status, std::string_view type, std::string_view body,
            const HttpHeaders& headers = {});
  /// A response in chunks: begin, write any number of times, end.
  void begin(int status, std::string_view type);
  void write(std::string_view chunk);
  void end();
  /// False once the client closed the connection or a write failed.
  bool is_connected();
  /// A response was sent or begun.
  bool is_begun() const { return begun_; }
  /// The connection can take another request.
  bool may_continue() const { return keep_alive_ && complete_ && !failed_; }

 private:
  void write_all(std::string_view data);
  void head(int status, std::string_view type, const HttpHeaders& headers);

  int socket_;
  bool keep_alive_, head_only_, begun_ = false, complete_ = false, failed_ = false;
};

using HttpHandler = std::function<void(const HttpRequest&, HttpResponse&)>;

class HttpServer {
 public:
  /// Listens. Port 0 is a free one. kUsage for an address that is not there or in use.
  HttpServer(const std::string& host, int port, HttpHandler handler, HttpLimits limits = {});
  /// Closes all connections and waits for their threads.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  /// Accepts no more connections; those that are open finish their request.
  void stop_accepting();
  int64_t connections() const { return open_.load(); }

 private:
  struct Connection {
    int socket = -1;
    bool rejected = false;  ///< one too many: it only hears so
    std::thread thread;
    std::atomic<bool> done{false};
  };
  void accept_all();
  void serve(Connection& connection);
  bool serve_one(int socket, std::string& buffer);
  void open(int socket, bool rejected);
  void collect();

  HttpHandler handler_;
  HttpLimits limits_;
  int listener_ = -1, port_ = 0;
  bool loopback_ = false;
  int wake_[2] = {-1, -1};  ///< a pipe that ends the accepting thread
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> open_{0};
  std::mutex mutex_;
  std::list<std::unique_ptr<Connection>> connections_;
  std::thread acceptor_;
};

}  // namespace paddle::serve
