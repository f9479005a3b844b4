#include "onnx/ops/regex.h"

#include <locale.h>
#include <regex.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace paddle::onnx {
namespace {

constexpr double kMaxPattern = 4096;

/// Escapes of control characters and anchors.
constexpr std::pair<char, char> kControls[] = {{'t', '\t'}, {'n', '\n'}, {'r', '\r'},
                                               {'f', '\f'}, {'v', '\v'}, {'a', '\a'}};
constexpr std::pair<char, char> kAnchors[] = {{'A', '^'}, {'z', '$'}};

/// POSIX classes in brackets, restricted to ASCII.
constexpr std::pair<std::string_view, std::string_view> kNamed[] = {
    {"[:alpha:]", "a-zA-Z"},      {"[:digit:]", "0-9"}, {"[:alnum:]", "a-zA-Z0-9"},
    {"[:word:]", "a-zA-Z0-9_"},   {"[:lower:]", "a-z"}, {"[:upper:]", "A-Z"},
    {"[:space:]", " \t\n\r\f\v"}, {"[:blank:]", " \t"}, {"[:xdigit:]", "0-9a-fA-F"},
    {"[:punct:]", "!-/:-@[-`{-~"}};

/// Translates an RE2 bracket expression to POSIX, which has no escapes inside brackets; advances
/// `at`.
std::string posix_bracket(const std::string& pattern, size_t& at) {
  std::string first, rest, last;  // `]` and `^` need fixed positions, `-` must be last
  const bool inverse = at < pattern.size() && pattern[at] == '^';
  if (inverse) ++at;
  for (; at < pattern.size() && pattern[at] != ']'; ++at) {
    const auto* const named = std::ranges::find_if(
        kNamed, [&](const auto& n) { return pattern.compare(at, n.first.size(), n.first) == 0; });
    if (named != std::end(kNamed)) {
      rest += named->second;
      at += named->first.size() - 1;
      continue;
    }
    if (pattern[at] != '\\' || at + 1 >= pattern.size()) {
      const bool end = at + 1 < pattern.size() && pattern[at + 1] == ']';
      (pattern[at] == '-' && end ? last : rest) += pattern[at];
      continue;
    }
    const char escaped = pattern[++at];
    if (escaped == 'w')
      rest += "a-zA-Z0-9_";
    else if (escaped == 'd')
      rest += "0-9";
    else if (escaped == 's')
      rest += " \t\n\r\f";
    else if (const auto* const sign =
                 std::ranges::find(kControls, escaped, &std::pair<char, char>::first);
             sign != std::end(kControls))
      rest += sign->second;
    else
      (escaped == '-' ? last : escaped == ']' ? first : rest) += escaped;
  }
  return (inverse ? "[^" : "[") + first + rest + last + "]";
}

/// Translates a letter class (\d, \w, …) to ASCII; empty if it is not one.
std::string posix_class(char letter) {
  switch (letter) {
    case 'd':
      return "[0-9]";
    case 'D':
      return "[^0-9]";
    case 'w':
      return "[a-zA-Z0-9_]";
    case 'W':
      return "[^a-zA-Z0-9_]";
    case 's':
      return "[ \t\n\r\f]";
    case 'S':
      return "[^ \t\n\r\f]";
    default:
      return "";
  }
}

/// Translates RE2 syntax to POSIX.
std::string posix_pattern(const std::string& pattern) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : 0;
    if (pattern[i] == '\\') {
      if (next >= '1' && next <= '9')
        fail(ErrorCode::kModel, "backreferences are not supported in patterns");
      const std::string letters = posix_class(next);
      const auto* const sign = std::ranges::find(kControls, next, &std::pair<char, char>::first);
      const auto* const anchor = std::ranges::find(kAnchors, next, &std::pair<char, char>::first);
      if (!letters.empty())
        out += letters;
      else if (sign != std::end(kControls))
        out += sign->second;
      else if (anchor != std::end(kAnchors))
        out += anchor->second;
      else if (std::isalnum(static_cast<unsigned char>(next)) && next != 'b' && next != 'B')
        fail(ErrorCode::kModel, "a pattern holds '\\", next, "', which is not supported");
      else
        out.append(pattern, i, 2);
      ++i;
    } else if (pattern[i] == '[') {
      out += posix_bracket(pattern, ++i);
    } else if (pattern.compare(i, 3, "(?:") == 0) {
      out += '(';
      i += 2;
    } else if (pattern[i] == '.') {
      out += "[^\n]";
    } else {
      out += pattern[i];
    }
  }
  return out;
}

/// Length of a POSIX pattern with repetition counts expanded, as the library does internally.
double expanded_length(const std::string& pattern) {
  std::vector<double> groups = {0};
  double last = 0;  // length of what a count would repeat
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '(') {
      groups.push_back(0);
    } else if (c == ')' && groups.size() > 1) {
      last = groups.back() + 1;
      groups.pop_back();
      groups.back() += last;
    } else if (c == '{') {
      double count = 0, most = 1;
      for (++i; i < pattern.size() && pattern[i] != '}'; ++i) {
        count = std::isdigit(static_cast<unsigned char>(pattern[i])) ? count * 10 + pattern[i] - '0'
                                                                     : 0;
        most = std::max(most, count);
      }
      groups.back() += last * (most - 1);
      last *= most;
    } else {
      if (c == '\\') ++i;
      if (c == '[')
        i = std::min(pattern.find(']', i + (pattern[i + 1] == '^' ? 3 : 2)), pattern.size());
      groups.back() += last = 1;
    }
  }
  return std::accumulate(groups.begin(), groups.end(), 0.0);
}

/// Sets a UTF-8 locale for the thread while alive.
class Utf8Scope {
 public:
  Utf8Scope() {
    static const locale_t kLocale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (kLocale) before_ = uselocale(kLocale);
  }
  ~Utf8Scope() {
    if (before_) uselocale(before_);
  }
  Utf8Scope(const Utf8Scope&) = delete;
  Utf8Scope& operator=(const Utf8Scope&) = delete;

 private:
  locale_t before_ = nullptr;
};

}  // namespace

struct Regex::Compiled {
  regex_t regex;
  explicit Compiled(const std::string& pattern) {
    const bool any_case = pattern.starts_with("(?i)");
    const std::string whole = posix_pattern(any_case ? pattern.substr(4) : pattern);
    if (expanded_length(whole) > kMaxPattern)
      fail(ErrorCode::kModel, "the pattern '", pattern.substr(0, 100),
           "' is too long with its repetitions expanded");
    const Utf8Scope characters;
    if (whole.size() > 4096 ||
        regcomp(&regex, whole.c_str(), REG_EXTENDED | (any_case ? REG_ICASE : 0)) != 0)
      fail(ErrorCode::kModel, "the pattern '", pattern.substr(0, 100), "' cannot be read");
  }
  ~Compiled() { regfree(&regex); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
};

Regex::Regex(const std::string& pattern) : compiled_(std::make_shared<const Compiled>(pattern)) {}

bool Regex::matches(const std::string& s) const {
  const auto match = find(s, 0);
  return match && match->begin == 0 && match->end == s.size();
}

std::optional<Regex::Match> Regex::find(const std::string& s, size_t from) const {
  regmatch_t at[1];
  at[0].rm_so = static_cast<regoff_t>(from);
  at[0].rm_eo = static_cast<regoff_t>(s.size());
  const Utf8Scope characters;
  if (regexec(&compiled_->regex, s.data(), 1, at, REG_STARTEND) != 0) return std::nullopt;
  return Match{static_cast<size_t>(at[0].rm_so), static_cast<size_t>(at[0].rm_eo)};
}

}  // namespace paddle::onnx
