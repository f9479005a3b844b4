#pragma once
// Requests that are rejected.

#include <string>

#include "base/text.h"

namespace paddle::serve {

/// A request that is rejected: an HTTP status and what is wrong with which key.
struct ApiError {
  int status = 400;
  std::string message;
  std::string key = {};
};
/// The JSON object of OpenAI's interface for errors.
std::string error_body(const ApiError& error);

/// Rejects a request for the value of a key; "" for none.
template <class... Parts>
[[noreturn]] void reject(const std::string& key, const Parts&... parts) {
  throw ApiError{400, str(parts...), key};
}

}  // namespace paddle::serve
