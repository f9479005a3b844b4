#include "text/json_value.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"

namespace paddle {

Json::Json() = default;
Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

namespace {

constexpr size_t kMaxDepth = 200;
const Json kNull;

/// Builds the tree from nlohmann's events.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(const std::string& name) : name_(name) {}
  Json take() { return std::move(root_); }

  bool null() override { return add({}); }
  bool boolean(bool value) override {
    Json out;
    out.kind = Json::Kind::kBoolean;
    out.boolean = value;
    return add(std::move(out));
  }
  bool number_integer(number_integer_t value) override {
    Json out;
    out.kind = Json::Kind::kInteger;
    out.integer = value;
    out.number = static_cast<double>(value);
    return add(std::move(out));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > uint64_t{INT64_MAX})
      return number_float(static_cast<double>(value), std::to_string(value));
    return number_integer(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& digits) override {
    Json out;
    out.kind = Json::Kind::kNumber;
    out.number = value;
    if (digits.find_first_of(".eE") == digits.npos) out.text = digits;
    return add(std::move(out));
  }
  bool string(string_t& value) override {
    Json out;
    out.kind = Json::Kind::kString;
    out.text = std::move(value);
    return add(std::move(out));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::Kind::kObject); }
  bool start_array(size_t) override { return open(Json::Kind::kArray); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    key_ = std::move(value);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& e) override {
    std::string message = e.what();  // "[json.exception.parse_error.101] parse error at line 1, …"
    if (const size_t end = message.find("] "); end != message.npos) message.erase(0, end + 2);
    std::replace(message.begin(), message.end(), '\n', ' ');
    fail(ErrorCode::kModel, name_, ": ", message);
  }

 private:
  bool add(Json value) {
    if (open_.empty())
      root_ = std::move(value);
    else if (open_.back()->kind == Json::Kind::kArray)
      open_.back()->items.push_back(std::move(value));
    else
      open_.back()->entries.emplace_back(std::move(key_), std::move(value));
    return true;
  }
  bool open(Json::Kind kind) {
    if (open_.size() >= kMaxDepth)
      fail(ErrorCode::kModel, name_, ": JSON nested over ", kMaxDepth, " levels deep");
    Json value;
    value.kind = kind;
    add(std::move(value));
    // A parent does not grow while a child is open, so pointers stay valid.
    if (open_.empty())
      open_.push_back(&root_);
    else if (open_.back()->kind == Json::Kind::kArray)
      open_.push_back(&open_.back()->items.back());
    else
      open_.push_back(&open_.back()->entries.back().second);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& name_;
  Json root_;
  std::vector<Json*> open_;
  std::string key_;
};

nlohmann::ordered_json to_nlohmann(const Json& value) {
  switch (value.kind) {
    case Json::Kind::kNull:
      return nullptr;
    case Json::Kind::kBoolean:
      return value.boolean;
    case Json::Kind::kInteger:
      return value.integer;
    case Json::Kind::kNumber: {
      uint64_t whole = 0;
      const auto* const end = value.text.data() + value.text.size();
      const auto parsed = std::from_chars(value.text.data(), end, whole);
      if (!value.text.empty() && parsed.ptr == end && parsed.ec == std::errc()) return whole;
      return value.number;
    }
    case Json::Kind::kString:
      return value.text;
    case Json::Kind::kArray: {
      auto out = nlohmann::ordered_json::array();
      for (const Json& item : value.items) out.push_back(to_nlohmann(item));
      return out;
    }
    case Json::Kind::kObject: {
      auto out = nlohmann::ordered_json::object();
      for (const auto& [key, item] : value.entries) out[key] = to_nlohmann(item);
      return out;
    }
  }
  return nullptr;
}

}  // namespace

const Json* Json::find(std::string_view key) const {
  for (auto it = entries.rbegin(); it != entries.rend(); ++it)
    if (it->first == key) return &it->second;
  return nullptr;
}

std::string Json::dump() const {
  return to_nlohmann(*this).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Json parse_json(std::string_view text, const std::string& name) {
  Builder builder(name);
  nlohmann::json::sax_parse(text, &builder);
  return builder.take();
}

Json read_json_file(const std::string& path, uint64_t max_bytes) {
  return parse_json(read_file(path, max_bytes, ErrorCode::kModel), path);
}

void JsonValue::reject(const std::string& message) const {
  fail(ErrorCode::kModel, file_, ": ", path_.empty() ? "" : path_ + ": ", message);
}

void JsonValue::expected(std::string_view what) const {
  std::string found = is_array() ? "a list" : is_object() ? "an object" : value_->dump();
  if (found.size() > 60) found = "a long text";
  reject(str("expected ", what, ", found ", found));
}

JsonValue JsonValue::get(const std::string& key) const {
  if (!is_object()) expected("an object");
  const Json* found = value_->find(key);
  return {found ? *found : kNull, file_, path_.empty() ? key : path_ + "." + key};
}

JsonValue JsonValue::at(const std::string& key) const {
  JsonValue found = get(key);
  if (found.is_null()) reject("there is no '" + key + "'");
  return found;
}

std::vector<JsonValue> JsonValue::items() const {
  if (!is_array()) expected("a list");
  std::vector<JsonValue> out;
  out.reserve(value_->items.size());
  for (size_t i = 0; i < value_->items.size(); ++i)
    out.push_back({value_->items[i], file_, str(path_, "[", i, "]")});
  return out;
}

const std::string& JsonValue::text() const {
  if (!is_string()) expected("a string");
  return value_->text;
}

int64_t JsonValue::integer() const {
  if (value_->kind != Json::Kind::kInteger) expected("an integer");
  return value_->integer;
}

double JsonValue::number() const {
  if (value_->kind != Json::Kind::kInteger && value_->kind != Json::Kind::kNumber)
    expected("a number");
  return value_->number;
}

bool JsonValue::boolean() const {
  if (value_->kind != Json::Kind::kBoolean) expected("true or false");
  return value_->boolean;
}

}  // namespace paddle
