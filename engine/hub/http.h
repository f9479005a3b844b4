#pragma once
// HTTP requests, by the module `http`.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paddle::hub {

struct HttpRequest {
  std::string url;  ///< http or https
  std::vector<std::string> headers = {};
  uint64_t from = 0;  ///< the first byte that is wanted
};

struct HttpReply {
  enum class End {
    kDone,
    kStopped,    ///< a callback returned false
    kBroken,     ///< the connection ended early
    kWholeOnly,  ///< the server does not support range requests: `from` must be 0
  };
  End end = End::kDone;
  int status = 0;
  std::string problem = {};  ///< why it is not done
};

struct HttpCallbacks {
  /// The status and the length of the body, where the server states it.
  std::function<bool(int status, std::optional<uint64_t> length)> begin;
  std::function<bool(std::string_view bytes)> body;
  std::function<bool()> proceed;  ///< called several times a second
};

/// A GET request. kDevice, naming the host, where there is no connection, and where the module is
/// not installed.
HttpReply http_get(const HttpRequest& request, const HttpCallbacks& callbacks);

/// A whole answer of at most `max_bytes`. kData for a status other than 200 and for longer ones.
std::string http_text(const HttpRequest& request, uint64_t max_bytes);

}  // namespace paddle::hub
