#pragma once
// The function of the module `http` (base/module.h): requests by libcurl.

#include <cstddef>
#include <cstdint>

namespace paddle::hub {

/// The version that paddle_module_version() returns.
constexpr int kHttpModuleVersion = 1;

extern "C" {

/// A GET request. The callbacks return 0 to end it.
struct PaddleHttpRequest {
  const char* url;             ///< http or https
  uint64_t from;               ///< the first byte that is wanted
  const char* const* headers;  ///< "Name: value"
  size_t header_count;
  /// Called before the first byte of the body, and once where the body is empty: the status, and
  /// the length of the body or -1.
  int (*begin)(void* user, int status, int64_t length);
  int (*body)(void* user, const char* data, size_t bytes);
  /// Called several times a second.
  int (*proceed)(void* user);
  void* user;
};

enum PaddleHttpResult : int {
  kHttpDone = 0,
  kHttpStopped = 1,      ///< a callback returned 0
  kHttpUnreachable = 2,  ///< no connection
  kHttpBroken = 3,       ///< the connection ended early: the rest may be asked for again
  kHttpWholeOnly = 4,    ///< the server does not support range requests: `from` must be 0
};

/// `problem` gets the cause unless the result is kHttpDone.
using paddle_http_get_t = int(const PaddleHttpRequest* request, char* problem, size_t capacity);
}

}  // namespace paddle::hub
