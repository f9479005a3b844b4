#include "data/sources/json_cells.h"

#include <nlohmann/json.hpp>

namespace paddle::data {

using nlohmann::json;

struct JsonCells::Object {
  json value;
};

namespace {

/// The value at a path, or null. A key with dots in its name is found first.
const json* find(const json& object, const std::string& path) {
  if (const auto it = object.find(path); it != object.end()) return &*it;
  const size_t dot = path.find('.');
  if (dot == std::string::npos) return nullptr;
  const auto outer = object.find(path.substr(0, dot));
  return outer == object.end() || !outer->is_object() ? nullptr
                                                      : find(*outer, path.substr(dot + 1));
}

}  // namespace

JsonCells::JsonCells(std::string_view text, const SourceLocation& place)
    : object_(std::make_unique<Object>()) {
  constexpr int kMaxNesting = 64;  // the parser recurses
  bool too_deep = false;
  const auto callback = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > kMaxNesting;
    return !too_deep;
  };
  json& value = object_->value;
  value = json::parse(text.begin(), text.end(), callback, false);
  if (!too_deep && value.is_object()) return;
  throw Error(ErrorCode::kData,
              too_deep ? str("more than ", kMaxNesting, " values inside each other")
              : value.is_discarded()
                  ? std::string("expected a JSON object, the text is not JSON")
                  : "expected a JSON object, found " + std::string(value.type_name()),
              place);
}
JsonCells::~JsonCells() = default;
JsonCells::JsonCells(JsonCells&&) noexcept = default;
JsonCells& JsonCells::operator=(JsonCells&&) noexcept = default;

std::vector<std::string> JsonCells::keys() const {
  std::vector<std::string> out;
  for (const auto& [key, value] : object_->value.items()) out.push_back(key);
  return out;
}

bool JsonCells::has(const std::string& path) const { return find(object_->value, path) != nullptr; }

void JsonCells::append(const std::string& path, std::string& out) const {
  const json* const value = find(object_->value, path);
  if (!value || value->is_null()) return;
  if (value->is_string())
    out += value->get_ref<const std::string&>();
  else if (value->is_boolean())
    out += value->get<bool>() ? '1' : '0';
  else
    out += value->dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace paddle::data
