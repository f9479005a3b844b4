#pragma once
// Metadata of a GGUF file that is written: keys with typed values.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/gguf/reader.h"

namespace paddle::formats::gguf {

class Metadata {
 public:
  void add_text(const std::string& key, std::string_view value);
  void add_integer(const std::string& key, uint32_t value);
  void add_number(const std::string& key, float value);
  void add_boolean(const std::string& key, bool value);
  void add_texts(const std::string& key, std::span<const std::string> values);
  void add_integers(const std::string& key, std::span<const int32_t> values);
  void add_numbers(const std::string& key, std::span<const float> values);

  /// In the order in which they were added; valid until this object changes or moves.
  std::vector<RawValue> values() const;

 private:
  std::vector<std::pair<std::string, std::string>> entries_;  ///< keys and their bytes
};

}  // namespace paddle::formats::gguf
