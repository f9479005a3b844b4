#include "text/grammar/regex.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"

namespace paddle::grammar {

namespace {

constexpr uint32_t kLast = 0x10FFFF;
constexpr int64_t kMaxRepetitions = 10'000;
constexpr int kMaxNesting = 200;

/// Sorted ranges of code points without overlap.
using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;

Ranges merged(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  Ranges out;
  for (const auto& range : ranges) {
    if (!out.empty() && range.first <= out.back().second + 1)
      out.back().second = std::max(out.back().second, range.second);
    else
      out.push_back(range);
  }
  return out;
}

Ranges complement(const Ranges& ranges) {
  Ranges out;
  uint32_t next = 0;
  for (const auto& [low, high] : merged(ranges)) {
    if (low > next) out.emplace_back(next, low - 1);
    next = high + 1;
  }
  if (next <= kLast) out.emplace_back(next, kLast);
  return out;
}

class Parser {
 public:
  Parser(Builder& builder, std::string_view pattern, std::string what, bool in_json)
      : builder_(builder), pattern_(pattern), what_(std::move(what)), in_json_(in_json) {}

  /// `whole`: texts that match, else those that contain a match.
  Part parse(bool whole) {
    // An anchor belongs to the whole expression, or to all of its alternatives by themselves.
    std::vector<Part> alternatives;
    do {
      const bool begins = whole || take('^');
      if (whole) take('^');
      Part part = parse_sequence(0);
      const bool ends = take('$') || whole;
      if (at_ < pattern_.size() && peek() != '|') reject("it does not belong there");
      std::vector<Part> parts;
      if (!begins) parts.push_back(builder_.star(characters(complement({}))));
      parts.push_back(part);
      if (!ends) parts.push_back(builder_.star(characters(complement({}))));
      alternatives.push_back(builder_.sequence(parts));
    } while (take('|'));
    return builder_.choice(alternatives);
  }

 private:
  template <class... Parts>
  [[noreturn]] void reject(const Parts&... parts) const {
    const std::string_view left = pattern_.substr(std::min(at_, pattern_.size()));
    fail(ErrorCode::kUsage, what_, ": at ", at_, left.empty() ? ", the end" : ", '",
         left.substr(0, 12), left.empty() ? ": " : "': ", parts...);
  }
  bool done() const { return at_ >= pattern_.size(); }
  char peek() const { return pattern_[at_]; }
  bool take(char c) {
    if (done() || peek() != c) return false;
    ++at_;
    return true;
  }
  uint32_t take_character() {
    if (done()) reject("a character is missing");
    const auto [length, code] = utf8_character(pattern_, at_);
    if (length == 0) reject("it is not UTF-8");
    at_ += length;
    return code;
  }

  Part parse_alternatives(int depth) {
    if (depth > kMaxNesting) reject("groups are nested too deeply");
    std::vector<Part> out = {parse_sequence(depth)};
    while (take('|')) out.push_back(parse_sequence(depth));
    return builder_.choice(out);
  }

  Part parse_sequence(int depth) {
    std::vector<Part> parts;
    while (!done() && peek() != '|' && peek() != ')') {
      if (peek() == '$') {
        if (depth == 0) break;
        reject("$ is supported at the end of the expression only");
      }
      parts.push_back(parse_repeated(depth));
    }
    return builder_.sequence(parts);
  }

  Part parse_repeated(int depth) {
    Part part = parse_atom(depth);
    for (bool first = true;; first = false) {
      int64_t least = 0, most = -1;
      const size_t begin = at_;
      if (take('*')) {
      } else if (take('+')) {
        least = 1;
      } else if (take('?')) {
        most = 1;
      } else if (!done() && peek() == '{' && parse_counts(least, most)) {
      } else {
        return part;
      }
      if (!first) {
        at_ = begin;
        reject("nothing to repeat");
      }
      take('?');  // the lazy form
      part = builder_.repeat(part, least, most);
    }
  }

  /// "{2}", "{2,}" or "{2,5}"; false for anything else, which is text.
  bool parse_counts(int64_t& least, int64_t& most) {
    const size_t begin = at_++;
    const auto number = [&](int64_t& out) {
      const size_t from = at_;
      out = 0;
      while (!done() && peek() >= '0' && peek() <= '9' && at_ - from < 6)
        out = out * 10 + (pattern_[at_++] - '0');
      return at_ > from;
    };
    bool good = number(least);
    if (good) {
      most = least;
      if (take(',') && !number(most)) most = -1;
      good = take('}');
    }
    if (!good) {
      at_ = begin;
      return false;
    }
    if (std::max(least, most) > kMaxRepetitions)
      reject("more than ", kMaxRepetitions, " repetitions");
    if (most >= 0 && most < least) reject("the counts are in the wrong order");
    return true;
  }

  Part parse_atom(int depth) {
    const char c = peek();
    if (c == '(') return parse_group(depth);
    if (c == '[') return characters(parse_class());
    if (c == '.') {
      ++at_;
      return characters(complement({{'\n', '\n'}, {'\r', '\r'}}));
    }
    if (c == '*' || c == '+' || c == '?') reject("nothing to repeat");
    if (c == '^') reject("^ is supported at the beginning of the expression only");
    if (c == '\\') return characters(parse_escape(false));
    const uint32_t code = take_character();
    return characters({{code, code}});
  }

  Part parse_group(int depth) {
    ++at_;
    if (take('?')) {
      if (take(':')) {
      } else if (take('P') || (!done() && peek() == '<' && at_ + 1 < pattern_.size() &&
                               pattern_[at_ + 1] != '=' && pattern_[at_ + 1] != '!')) {
        if (!take('<')) reject("this kind of group is not supported");
        while (!done() && peek() != '>') ++at_;
        if (!take('>')) reject("a group's name has no end");
      } else {
        reject("this kind of group is not supported");
      }
    }
    const Part part = parse_alternatives(depth + 1);
    if (!take(')')) reject("')' is missing");
    return part;
  }

  Ranges parse_class() {
    ++at_;
    const bool negated = take('^');
    Ranges ranges;
    for (bool first = true; first || done() || peek() != ']'; first = false) {
      if (done()) reject("']' is missing");
      Ranges low = parse_class_item();
      const bool single = low.size() == 1 && low[0].first == low[0].second;
      if (single && at_ + 1 < pattern_.size() && peek() == '-' && pattern_[at_ + 1] != ']') {
        ++at_;
        const Ranges high = parse_class_item();
        if (high.size() != 1 || high[0].first != high[0].second || high[0].first < low[0].first)
          reject("a range is in the wrong order");
        low[0].second = high[0].second;
      }
      ranges.insert(ranges.end(), low.begin(), low.end());
    }
    ++at_;
    ranges = negated ? complement(ranges) : merged(ranges);
    if (ranges.empty()) reject("a class without characters");
    return ranges;
  }

  Ranges parse_class_item() {
    if (done()) reject("']' is missing");
    if (peek() == '\\') return parse_escape(true);
    if (peek() == '[' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] == ':')
      reject("classes by name are not supported");
    const uint32_t code = take_character();
    return {{code, code}};
  }

  uint32_t parse_hex(int digits) {
    uint32_t out = 0;
    for (int i = 0; i < digits; ++i) {
      if (done()) reject("a hexadecimal digit is missing");
      const char c = pattern_[at_];
      const int value = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (value < 0) reject("expected a hexadecimal digit");
      out = out * 16 + static_cast<uint32_t>(value);
      ++at_;
    }
    return out;
  }

  Ranges parse_escape(bool in_class) {
    ++at_;
    if (done()) reject("the expression ends with '\\'");
    const Ranges digits = {{'0', '9'}}, word = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
                 space = {{'\t', '\r'}, {' ', ' '}};
    const char c = peek();
    const auto single = [](uint32_t code) { return Ranges{{code, code}}; };
    switch (c) {
      case 'd':
        return ++at_, digits;
      case 'D':
        return ++at_, complement(digits);
      case 'w':
        return ++at_, word;
      case 'W':
        return ++at_, complement(word);
      case 's':
        return ++at_, space;
      case 'S':
        return ++at_, complement(space);
      case 't':
        return ++at_, single('\t');
      case 'n':
        return ++at_, single('\n');
      case 'r':
        return ++at_, single('\r');
      case 'f':
        return ++at_, single('\f');
      case 'v':
        return ++at_, single('\v');
      case '0':
        return ++at_, single(0);
      case 'x':
        ++at_;
        return single(parse_hex(2));
      case 'u':
        ++at_;
        return single(parse_hex(4));
      default:
        break;
    }
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9');
    if (letter) {
      if (in_class && c == 'b') return ++at_, single('\b');
      reject("this escape is not supported");
    }
    return single(take_character());
  }

  /// One of these characters; inside of a JSON string as they are written there.
  Part characters(const Ranges& ranges) {
    std::vector<Part> parts;
    const auto add = [&](uint32_t low, uint32_t high) {
      if (low <= high) parts.push_back(builder_.characters(low, high));
    };
    for (const auto& [low, high] : ranges) {
      if (!in_json_) {
        add(low, high);
        continue;
      }
      // Plain characters of JSON strings, then the ones that need an escape.
      for (const auto& [from, to] :
           {std::pair<uint32_t, uint32_t>{0x20, 0x21}, {0x23, 0x5B}, {0x5D, kLast}})
        add(std::max(low, from), std::min(high, to));
      for (const auto& [code, escape] : {std::pair<uint32_t, const char*>{'"', "\\\""},
                                         {'\\', "\\\\"},
                                         {'\n', "\\n"},
                                         {'\t', "\\t"},
                                         {'\r', "\\r"},
                                         {'\b', "\\b"},
                                         {'\f', "\\f"}})
        if (code >= low && code <= high) parts.push_back(builder_.text(escape));
    }
    if (parts.empty()) reject("no character that a JSON string can hold");
    return builder_.choice(parts);
  }

  Builder& builder_;
  std::string_view pattern_;
  std::string what_;
  bool in_json_;
  size_t at_ = 0;
};

}  // namespace

Part regex_part(Builder& builder, std::string_view pattern, const std::string& what, bool whole,
                bool in_json) {
  return Parser(builder, pattern, what, in_json).parse(whole);
}

Grammar compile_regex(std::string_view pattern) {
  const std::string what = "the regular expression";
  Builder builder(what);
  const int32_t root = builder.new_rule();
  builder.define(root, regex_part(builder, pattern, what, true, false));
  return builder.take();
}

}  // namespace paddle::grammar
