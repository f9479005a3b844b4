#pragma once
// JSON files of tokenizers and models: the values, and a view of them that knows its path, for
// errors that say where something is wrong: "t.json: model.merges[3]: expected a string, found
// null".

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace paddle {

struct Json {
  // Defined in json_value.cc: here std::pair<std::string, Json> is an incomplete type.
  Json();
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  enum class Kind : uint8_t { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  bool boolean = false;
  int64_t integer = 0;
  double number = 0;  ///< of an integer too
  std::string text;   ///< of a string; the digits of a number that is an integer beyond 64 bits
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> entries;  ///< in the order of the file

  /// The last entry of this name; nullptr if there is none.
  const Json* find(std::string_view key) const;
  /// As JSON, for messages.
  std::string dump() const;
};

/// kModel, with the place, for text that is not JSON or nested over 200 levels deep.
Json parse_json(std::string_view text, const std::string& name);
/// Reads a file of at most `max_bytes`.
Json read_json_file(const std::string& path, uint64_t max_bytes = uint64_t{256} << 20);

class JsonValue {
 public:
  /// `file` is named in errors.
  JsonValue(const Json& value, std::string file) : value_(&value), file_(std::move(file)) {}

  const Json& value() const { return *value_; }
  bool is_null() const { return value_->kind == Json::Kind::kNull; }
  bool is_string() const { return value_->kind == Json::Kind::kString; }
  bool is_array() const { return value_->kind == Json::Kind::kArray; }
  bool is_object() const { return value_->kind == Json::Kind::kObject; }

  /// kModel if this is not an object or has no such key.
  JsonValue at(const std::string& key) const;
  /// A null value if there is no such key.
  JsonValue get(const std::string& key) const;
  std::vector<JsonValue> items() const;  ///< of an array

  const std::string& text() const;
  int64_t integer() const;
  double number() const;
  bool boolean() const;
  std::string text_or(std::string_view fallback) const {
    return is_null() ? std::string(fallback) : text();
  }
  bool boolean_or(bool fallback) const { return is_null() ? fallback : boolean(); }
  int64_t integer_or(int64_t fallback) const { return is_null() ? fallback : integer(); }

  [[noreturn]] void reject(const std::string& message) const;

 private:
  JsonValue(const Json& value, std::string file, std::string path)
      : value_(&value), file_(std::move(file)), path_(std::move(path)) {}
  [[noreturn]] void expected(std::string_view what) const;
  const Json* value_;
  std::string file_, path_;
};

}  // namespace paddle
