#pragma once
// The keys of a request's JSON object, each read once and checked; others are rejected.

#include <string>
#include <vector>

#include "serve/api_error.h"
#include "text/json_value.h"

namespace paddle::serve {

class Keys {
 public:
  explicit Keys(const Json& body) : body_(body) {}

  /// Null if the key is absent or null.
  const Json* find(const char* key);
  double number(const char* key, double fallback, double low, double high);
  int64_t integer(const char* key, int64_t fallback, int64_t low, int64_t high);
  bool boolean(const char* key, bool fallback);
  const std::string* text(const char* key);
  /// Rejects keys that were not read.
  void check_all_read() const;

 private:
  const Json& body_;
  std::vector<std::string> known_;
};

}  // namespace paddle::serve
