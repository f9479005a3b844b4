#include "formats/gguf/metadata.h"

namespace paddle::formats::gguf {
namespace {

/// GGUF's numbers of the types that are written here.
enum MetadataType : uint32_t {
  kTypeUint32 = 4,
  kTypeInt32 = 5,
  kTypeFloat32 = 6,
  kTypeBoolean = 7,
  kTypeText = 8,
  kTypeList = 9
};

template <class T>
void append_value(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void append_value(std::string& to, std::string_view text) {
  append_value<uint64_t>(to, text.size());
  to += text;
}
void append_value(std::string& to, const std::string& text) {
  append_value(to, std::string_view(text));
}

template <class T>
std::string typed(MetadataType type, const T& value) {
  std::string out;
  append_value<uint32_t>(out, type);
  append_value(out, value);
  return out;
}

template <class T>
std::string typed_list(MetadataType type, std::span<const T> values) {
  std::string out;
  append_value<uint32_t>(out, kTypeList);
  append_value<uint32_t>(out, type);
  append_value<uint64_t>(out, values.size());
  for (const T& each : values) append_value(out, each);
  return out;
}

}  // namespace

void Metadata::add_text(const std::string& key, std::string_view value) {
  entries_.emplace_back(key, typed(kTypeText, value));
}
void Metadata::add_integer(const std::string& key, uint32_t value) {
  entries_.emplace_back(key, typed(kTypeUint32, value));
}
void Metadata::add_number(const std::string& key, float value) {
  entries_.emplace_back(key, typed(kTypeFloat32, value));
}
void Metadata::add_boolean(const std::string& key, bool value) {
  entries_.emplace_back(key, typed(kTypeBoolean, static_cast<uint8_t>(value)));
}
void Metadata::add_texts(const std::string& key, std::span<const std::string> values) {
  entries_.emplace_back(key, typed_list(kTypeText, values));
}
void Metadata::add_integers(const std::string& key, std::span<const int32_t> values) {
  entries_.emplace_back(key, typed_list(kTypeInt32, values));
}
void Metadata::add_numbers(const std::string& key, std::span<const float> values) {
  entries_.emplace_back(key, typed_list(kTypeFloat32, values));
}

std::vector<RawValue> Metadata::values() const {
  std::vector<RawValue> out;
  for (const auto& [key, bytes] : entries_) out.push_back({key, bytes});
  return out;
}

}  // namespace paddle::formats::gguf
