#pragma once
// Small text helpers: concatenation of printable values, joining, and "did you mean".

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace paddle {

std::string format_double(double value);  ///< shortest text that reads back to the same value
std::string format_float(float value);    ///< the same for float32

namespace text_detail {
inline void append(std::string& out, std::string_view text) { out += text; }
inline void append(std::string& out, const char* text) { out += text; }
inline void append(std::string& out, char c) { out += c; }
inline void append(std::string& out, bool value) { out += value ? "true" : "false"; }
inline void append(std::string& out, float value) { out += format_float(value); }
inline void append(std::string& out, double value) { out += format_double(value); }
template <class T>
requires std::is_integral_v<T>
void append(std::string& out, T value) { out += std::to_string(value); }
template <class T>
requires requires(const T& t) { t.text(); }
void append(std::string& out, const T& value) { out += value.text(); }
template <class T>
void append(std::string& out, const std::vector<T>& values) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) out += ", ";
    append(out, values[i]);
  }
  out += ']';
}

/// An argument of `str`, and how to append it. Calls of `str` only fill an array of these: inlined
/// concatenation would be most of the code of a file that reports errors.
struct Part {
  const void* value;
  void (*append)(std::string& out, const void* value);
};

template <class T>
void append_as(std::string& out, const void* value) {
  append(out, *static_cast<const T*>(value));
}
void append_c_string(std::string& out, const void* value);

template <class T>
[[gnu::always_inline]] inline Part part(const T& value) {
  if constexpr (std::is_array_v<T>)
    return {value, append_c_string};
  else
    return {&value, append_as<T>};
}

std::string concatenate(std::span<const Part> parts);

extern template void append_as<std::string>(std::string&, const void*);
extern template void append_as<std::string_view>(std::string&, const void*);
extern template void append_as<const char*>(std::string&, const void*);
extern template void append_as<char>(std::string&, const void*);
extern template void append_as<bool>(std::string&, const void*);
extern template void append_as<int>(std::string&, const void*);
extern template void append_as<unsigned>(std::string&, const void*);
extern template void append_as<long>(std::string&, const void*);
extern template void append_as<unsigned long>(std::string&, const void*);
extern template void append_as<float>(std::string&, const void*);
extern template void append_as<double>(std::string&, const void*);
extern template void append_as<std::vector<int64_t>>(std::string&, const void*);
extern template void append_as<std::vector<std::string>>(std::string&, const void*);
}  // namespace text_detail

/// Concatenates strings, numbers, vectors and anything with a `text()` member.
template <class... Parts>
[[gnu::always_inline]] inline std::string str(const Parts&... parts) {
  const text_detail::Part list[] = {text_detail::part(parts)...};
  return text_detail::concatenate(list);
}

std::string join(std::span<const std::string> parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

/// Text for a person, of names that may come from anybody's files: control characters, which could
/// forge lines or steer a terminal, and bytes that are not UTF-8 become "\x1b"; those in `kept`
/// stay.
std::string printable(std::string_view text, std::string_view kept = "");

/// Glob match with `*` (any characters) and `?`.
bool matches_pattern(std::string_view pattern, std::string_view text);

/// The candidate nearest to `word` by edit distance, or "" if none is near.
std::string nearest(std::string_view word, std::span<const std::string> candidates);
/// " (did you mean 'x'?)", or "" if nothing is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);
/// "12.3 MiB"
std::string human_bytes(uint64_t bytes);

}  // namespace paddle
