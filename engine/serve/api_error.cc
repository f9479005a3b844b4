#include "serve/api_error.h"

#include <nlohmann/json.hpp>

namespace paddle::serve {

std::string error_body(const ApiError& e) {
  using Json = nlohmann::ordered_json;
  Json error = {{"message", e.message},
                {"type", e.status < 500 ? "invalid_request_error" : "server_error"},
                {"param", nullptr},
                {"code", nullptr}};
  if (!e.key.empty()) error["param"] = e.key;
  return Json{{"error", error}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace paddle::serve
