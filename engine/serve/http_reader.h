#pragma once
// Reads HTTP/1.1 requests from the bytes that arrive (RFC 9110 and 9112).

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace paddle::serve {

struct HttpRequest {
  std::string method, path;                    ///< path without its query
  std::string query;                           ///< what follows its '?', as it is
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
  /// The server listens to programs of its own machine only.
  bool on_loopback = false;

  std::string header(const std::string& name) const;
};

struct HttpLimits {
  size_t head = size_t{64} << 10, body = size_t{64} << 20;  ///< bytes of a request
  int connections = 1024;
  int read_seconds = 30;   ///< for a request to arrive, and between requests
  int write_seconds = 30;  ///< for a client that does not read
};

/// A request that is answered with an error, after which the connection ends.
struct HttpError {
  int status;
  std::string message;
};

class HttpReader {
 public:
  explicit HttpReader(const HttpLimits& limits) : limits_(limits) {}

  /// Takes what belongs to the request from the front of `buffer`; whether it is complete. Throws
  /// HttpError for a malformed request, or one over the limits.
  bool take(std::string& buffer);
  /// Anything of a request has arrived.
  bool has_begun() const { return state_ != State::kHead; }
  /// The client waits to hear whether it may send the body.
  bool awaits_continue() const { return state_ != State::kHead && expects_continue_; }
  void continued() { expects_continue_ = false; }
  bool keep_alive() const { return keep_alive_; }
  HttpRequest& request() { return request_; }

 private:
  enum class State : uint8_t { kHead, kBody, kChunkSize, kChunk, kChunkEnd, kTrailers, kDone };
  bool take_head(std::string& buffer);
  void read_head(std::string_view head);
  void read_request_line(std::string_view line);
  void read_field(std::string_view line);
  void check_host() const;
  void choose_body();
  bool take_body(std::string& buffer);
  bool take_line(std::string& buffer, std::string& line);
  void begin_chunk(std::string_view line);
  void check_size(uint64_t more) const;

  HttpLimits limits_;
  HttpRequest request_;
  State state_ = State::kHead;
  int minor_version_ = 1;
  bool keep_alive_ = false, expects_continue_ = false;
  uint64_t left_ = 0;    ///< bytes of the body or chunk
  size_t trailers_ = 0;  ///< bytes of them
};

/// The name of a Host header or an origin, in lower case: without port, and without the brackets of
/// an IPv6 address. Empty if it is malformed.
std::string host_name(std::string_view authority);

/// ASCII letters in lower case.
std::string lower_ascii(std::string_view text);

}  // namespace paddle::serve
