#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace paddle {
namespace {

template <class T>
std::string shortest(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      // A transposition counts as one edit.
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

namespace text_detail {

void append_c_string(std::string& out, const void* value) {
  out += static_cast<const char*>(value);
}

std::string concatenate(std::span<const Part> parts) {
  std::string out;
  for (const Part& part : parts) part.append(out, part.value);
  return out;
}

template void append_as<std::string>(std::string&, const void*);
template void append_as<std::string_view>(std::string&, const void*);
template void append_as<const char*>(std::string&, const void*);
template void append_as<char>(std::string&, const void*);
template void append_as<bool>(std::string&, const void*);
template void append_as<int>(std::string&, const void*);
template void append_as<unsigned>(std::string&, const void*);
template void append_as<long>(std::string&, const void*);
template void append_as<unsigned long>(std::string&, const void*);
template void append_as<float>(std::string&, const void*);
template void append_as<double>(std::string&, const void*);
template void append_as<std::vector<int64_t>>(std::string&, const void*);
template void append_as<std::vector<std::string>>(std::string&, const void*);

}  // namespace text_detail

std::string format_double(double value) { return shortest(value); }
std::string format_float(float value) { return shortest(value); }

std::string printable(std::string_view text, std::string_view kept) {
  constexpr char kDigits[] = "0123456789abcdef";
  // The C0 and C1 controls, and the marks that reverse the order of what follows.
  const auto is_control = [](uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
  };
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = utf8_character(text, at);
    const size_t length = std::max<size_t>(character.length, 1);
    const std::string_view bytes = text.substr(at, length);
    at += length;
    if (character.length > 0 &&
        (!is_control(character.code) || kept.find(bytes) != std::string_view::npos)) {
      out += bytes;
      continue;
    }
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) out += separator;
    out += parts[i];
  }
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (true) {
    const size_t end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

bool matches_pattern(std::string_view pattern, std::string_view text) {
  // Greedy with a single backtracking point; linear for practical patterns.
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) && pattern[p] != '*') {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

static std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates)
    if (lower_case(word) == lower_case(candidate)) return candidate;
  for (const std::string& candidate : candidates) {
    size_t distance = edit_distance(word, candidate);
    // A prefix or an extension counts as near.
    if (word.size() >= 3 && (candidate.starts_with(word) || word.starts_with(candidate)))
      distance = std::min<size_t>(distance, 2);
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::string best = nearest(word, candidates);
  return best.empty() ? "" : " (did you mean '" + best + "'?)";
}

std::string human_bytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
  const double rounded = std::round(value * 10) / 10;
  return format_double(rounded) + " " + kUnits[unit];
}

}  // namespace paddle
