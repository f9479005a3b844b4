#pragma once
// Reading what a plug-in gave: tables of pointers to structs that start with their size.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/error.h"

namespace paddle::plugin {

/// The size that a struct must have to hold the field.
#define PADDLE_END_OF(type, field) (offsetof(type, field) + sizeof(type::field))

inline bool is_empty(const char* text) { return !text || !*text; }

/// A copy of a struct of any size that its maker knew: what lies beyond counts as zero.
template <class T>
T known_part(const T& given) {
  T out{};
  std::memcpy(&out, &given, std::min<size_t>(given.struct_size, sizeof out));
  return out;
}

/// The descriptors of a file: kDevice names the file and the field.
class Descriptors {
 public:
  explicit Descriptors(const std::string& path) : path_(path) {}

  [[noreturn]] void reject(const std::string& why) const {
    fail(ErrorCode::kDevice, path_, ": ", why);
  }
  template <class T>
  const T& item(const T* const* items, uint32_t i, const char* what, size_t mandatory_end) const {
    if (!items || !items[i]) reject(str(what, " ", i, ": is null"));
    if (items[i]->struct_size < mandatory_end)
      reject(str(what, " ", i, ": its struct_size ", items[i]->struct_size,
                 " is too small, expected at least ", mandatory_end));
    return *items[i];
  }
  /// Rejects names other than words of lower-case letters, digits and '_', and those in `taken`.
  template <class Names>
  void check_word(const char* what, uint32_t i, const char* name, const Names& taken) const {
    const std::string word = name ? name : "";
    const bool fits = !word.empty() && word.size() < 64 && std::ranges::all_of(word, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (!fits)
      reject(str(what, " ", i, ": expected a name of lower-case letters, digits and '_', found '",
                 word, "'"));
    if (std::ranges::find(taken, word) != std::ranges::end(taken))
      reject(str(what, " ", i, ": there are two of the name '", word, "'"));
  }

 private:
  const std::string& path_;
};

}  // namespace paddle::plugin
