#include "serve/request_keys.h"

#include <algorithm>

namespace paddle::serve {

const Json* Keys::find(const char* key) {
  known_.emplace_back(key);
  const Json* const value = body_.find(key);
  return value && value->kind != Json::Kind::kNull ? value : nullptr;
}

double Keys::number(const char* key, double fallback, double low, double high) {
  const Json* const value = find(key);
  if (!value) return fallback;
  if ((value->kind != Json::Kind::kNumber && value->kind != Json::Kind::kInteger) ||
      !(value->number >= low && value->number <= high))
    reject(key, "'", key, "' is ", value->dump(), ", expected a number from ", low, " to ", high);
  return value->number;
}

int64_t Keys::integer(const char* key, int64_t fallback, int64_t low, int64_t high) {
  const Json* const value = find(key);
  if (!value) return fallback;
  if (value->kind != Json::Kind::kInteger || value->integer < low || value->integer > high)
    reject(key, "'", key, "' is ", value->dump(), ", expected an integer from ", low, " to ", high);
  return value->integer;
}

bool Keys::boolean(const char* key, bool fallback) {
  const Json* const value = find(key);
  if (!value) return fallback;
  if (value->kind != Json::Kind::kBoolean)
    reject(key, "'", key, "' is ", value->dump(), ", expected true or false");
  return value->boolean;
}

const std::string* Keys::text(const char* key) {
  const Json* const value = find(key);
  if (!value) return nullptr;
  if (value->kind != Json::Kind::kString)
    reject(key, "'", key, "' is ", value->dump(), ", expected a string");
  return &value->text;
}

void Keys::check_all_read() const {
  for (const auto& [key, value] : body_.entries)
    if (std::find(known_.begin(), known_.end(), key) == known_.end())
      reject(key, "unknown key '", key, "'", did_you_mean(key, known_));
}

}  // namespace paddle::serve
