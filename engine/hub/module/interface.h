#pragma once
// The functions of the module `http` (base/module.h): requests by libcurl and SHA-256 by OpenSSL.

#include <cstddef>
#include <cstdint>

namespace paddle::hub {

/// What paddle_module_version() returns.
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
  kHttpWholeOnly = 4,    ///< the server sends whole files only: `from` must be 0
};

/// `problem` gets the cause unless the result is kHttpDone.
using paddle_http_get_t = int(const PaddleHttpRequest* request, char* problem, size_t capacity);
/// A hash to add bytes to; null without memory.
using paddle_sha256_new_t = void*();
using paddle_sha256_add_t = void(void* hash, const void* data, size_t bytes);
/// Writes 64 hexadecimal digits and a zero, and releases the hash.
using paddle_sha256_finish_t = void(void* hash, char* digits);
}

}  // namespace paddle::hub
