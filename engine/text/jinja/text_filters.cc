// Filters for lines, lists of columns and HTML, which chat templates rarely use.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/utf8.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/strings.h"
#include "text/unicode.h"

namespace paddle::jinja {

namespace {

/// Characters of a text.
using Letters = std::vector<std::string_view>;

/// The chunks between which Python's textwrap breaks lines: runs of spaces, words, and parts of
/// words with hyphens.
class WrapChunks {
 public:
  WrapChunks(const Letters& letters, bool at_hyphens)
      : letters_(letters), at_hyphens_(at_hyphens) {}

  std::vector<Letters> all() const {
    std::vector<Letters> out;
    for (size_t i = 0; i < letters_.size();) {
      const size_t end = end_of(i);
      out.emplace_back(letters_.begin() + static_cast<ptrdiff_t>(i),
                       letters_.begin() + static_cast<ptrdiff_t>(end));
      i = end;
    }
    return out;
  }
  static bool is_space(std::string_view letter) {
    return letter.size() == 1 && std::string_view("\t\n\v\f\r ").find(letter) != std::string::npos;
  }

 private:
  uint32_t code(size_t i) const { return utf8_character(letters_[i], 0).code; }
  bool is_word(size_t i) const {
    return i < letters_.size() &&
           (code(i) == '_' || unicode::is_letter(code(i)) || unicode::is_number(code(i)));
  }
  bool is_letter(size_t i) const {
    return i < letters_.size() && (code(i) == '_' || unicode::is_letter(code(i)));
  }
  bool is_word_or_punctuation(size_t i) const {
    return is_word(i) || std::string_view("!\"'&.,?").find(letters_[i]) != std::string::npos;
  }
  bool is_hyphen(size_t i) const { return i < letters_.size() && letters_[i] == "-"; }
  /// The end of two or more hyphens from `i` on that stand between words; `i` if there are none.
  size_t dash_end(size_t i) const {
    size_t end = i;
    while (is_hyphen(end)) ++end;
    return end >= i + 2 && i > 0 && is_word_or_punctuation(i - 1) && is_word(end) ? end : i;
  }
  /// Whether a line may end after the hyphen at `i`.
  bool breaks_behind(size_t i) const {
    if (!is_hyphen(i)) return false;
    const bool before =
        (i >= 2 && is_letter(i - 2) && is_letter(i - 1)) ||
        (i >= 3 && is_letter(i - 3) && is_hyphen(i - 2) && is_word_or_punctuation(i - 1));
    return before && is_letter(i + 1) &&
           (is_letter(i + 2) || (is_hyphen(i + 2) && is_letter(i + 3)));
  }
  size_t end_of(size_t begin) const {
    size_t i = begin;
    if (is_space(letters_[i])) {
      while (i < letters_.size() && is_space(letters_[i])) ++i;
      return i;
    }
    if (at_hyphens_)
      if (const size_t end = dash_end(i); end > i) return end;
    for (++i; i < letters_.size() && !is_space(letters_[i]); ++i) {
      if (at_hyphens_ && breaks_behind(i)) return i + 1;
      if (at_hyphens_ && dash_end(i) > i) return i;
    }
    return i;
  }

  const Letters& letters_;
  bool at_hyphens_;
};

struct WrapOptions {
  size_t width = 79;
  bool break_long_words = true, break_on_hyphens = true;
};

/// Where a word that is longer than a line is cut to fit into `space`.
size_t cut_of_long_word(const Letters& word, size_t space, bool at_hyphens) {
  if (!at_hyphens || word.size() <= space) return space;
  for (size_t hyphen = space; hyphen-- > 1;)
    if (word[hyphen] == "-")
      return std::any_of(word.begin(), word.begin() + static_cast<ptrdiff_t>(hyphen),
                         [](std::string_view letter) { return letter != "-"; })
                 ? hyphen + 1
                 : space;
  return space;
}

/// The lines of textwrap.wrap.
std::vector<std::string> wrapped(const std::string& text, const WrapOptions& options,
                                 TextBudget& budget) {
  constexpr uint64_t kLineBytes = 2 * sizeof(std::string);
  budget.charge(text.size(), sizeof(Letters) + kLineBytes);  // chunks and lines of one character
  const auto letters = characters(text, budget);
  auto chunks = WrapChunks(letters, options.break_on_hyphens).all();
  const auto blank = [](const Letters& chunk) {
    return chunk.empty() || WrapChunks::is_space(chunk.front());
  };
  std::vector<std::string> lines;
  for (size_t next = 0; next < chunks.size();) {
    if (blank(chunks[next]) && !lines.empty()) ++next;
    std::vector<Letters> line;
    size_t length = 0;
    while (next < chunks.size() && length + chunks[next].size() <= options.width) {
      length += chunks[next].size();
      line.push_back(std::move(chunks[next++]));
    }
    if (next < chunks.size() && chunks[next].size() > options.width) {
      auto& word = chunks[next];
      if (options.break_long_words) {
        const size_t cut = cut_of_long_word(word, options.width - length, options.break_on_hyphens);
        budget.step(word.size() / 64);  // what is left moves to the front
        const auto middle = word.begin() + static_cast<ptrdiff_t>(cut);
        line.emplace_back(word.begin(), middle);  // empty if nothing fits, as in Python
        word.erase(word.begin(), middle);
      } else if (line.empty()) {
        line.push_back(std::move(chunks[next++]));
      }
    }
    if (!line.empty() && blank(line.back())) line.pop_back();
    if (line.empty()) continue;
    std::string& out = lines.emplace_back();
    for (const auto& chunk : line)
      for (const std::string_view letter : chunk) out += letter;
  }
  return lines;
}

Value wordwrap(Interpreter& i, const Value& v, const Arguments& a) {
  const Parameters p(a, "wordwrap",
                     {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  const int64_t width = p.integer(0, 79);
  if (width < 1) fail(ErrorCode::kData, "wordwrap: the width is ", width, ", expected at least 1");
  const WrapOptions options{static_cast<size_t>(width), p.boolean(1, true), p.boolean(3, true)};
  const std::string by = p.has(2) && !p[2].is_none() ? p.text(2, "\n") : "\n";
  i.charge_texts(1, 0);
  BudgetedText out(i.budget());
  bool first = true;
  for (const std::string& line : split_lines(v.text(i.budget()), false, i.budget())) {
    if (!first) out += by;
    first = false;
    const auto lines = wrapped(line, options, i.budget());
    for (size_t k = 0; k < lines.size(); ++k) {
      if (k > 0) out += by;
      out += lines[k];
    }
  }
  return out.take();
}

Value slice(Interpreter& i, const Value& v, const Arguments& a) {
  constexpr int64_t kMaxSlices = 1 << 16;
  const Parameters p(a, "slice", {"slices", "fill_with"});
  const int64_t slices = p.integer(0, 0);
  if (slices < 1 || slices > kMaxSlices)
    fail(ErrorCode::kData, "slice: ", slices, " slices, expected 1 to ", kMaxSlices);
  const auto items = iterate(i, v);
  const auto size = static_cast<int64_t>(items.size());
  const int64_t each = size / slices, longer = size % slices;
  i.charge_list(items.size() + 6 * static_cast<size_t>(slices));
  std::vector<Value> out;
  auto next = items.begin();
  for (int64_t s = 0; s < slices; ++s) {
    const auto end = next + (each + (s < longer ? 1 : 0));
    std::vector<Value> part(next, end);
    next = end;
    if (p.has(1) && !p[1].is_none() && s >= longer) part.push_back(p[1]);
    out.push_back(Value::list(std::move(part)));
  }
  return Value::generator(std::move(out));
}

Value filesizeformat(Interpreter&, const Value& v, const Arguments& a) {
  const Parameters p(a, "filesizeformat", {"binary"});
  const bool binary = p.boolean(0, false);
  if (!v.is_number()) fail(ErrorCode::kData, "filesizeformat needs a number, not ", v.type_name());
  const double bytes = v.number(), base = binary ? 1024 : 1000;
  if (bytes == 1) return Value(std::string("1 Byte"));
  if (bytes < base) return Value(str(static_cast<int64_t>(bytes), " Bytes"));
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  double unit = base;
  size_t k = 0;
  while (k + 1 < kPrefixes.size() && bytes >= unit * base) {
    unit *= base;
    ++k;
  }
  const char prefix = binary && k == 0 ? 'K' : kPrefixes[k];
  return Value(fmt::format("{:.1f} {}{}", bytes / unit, prefix, binary ? "iB" : "B"));
}

/// Texts of HTML's common entities, and of those by number.
std::string unescaped(const std::string& text) {
  static const std::map<std::string_view, std::string_view> kNames = {
      {"amp", "&"},       {"lt", "<"},        {"gt", ">"},       {"quot", "\""},  {"apos", "'"},
      {"nbsp", "\u00a0"}, {"copy", "\u00a9"}, {"reg", "\u00ae"}, {"hellip", "…"}, {"mdash", "—"},
      {"ndash", "–"},     {"lsquo", "‘"},     {"rsquo", "’"},    {"ldquo", "“"},  {"rdquo", "”"},
      {"laquo", "«"},     {"raquo", "»"},     {"middot", "·"},   {"euro", "€"},   {"times", "×"}};
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text[at] == '&' ? text.find(';', at) : text.npos;
    if (end == text.npos || end - at > 12) {
      out += text[at++];
      continue;
    }
    const std::string_view name = std::string_view(text).substr(at + 1, end - at - 1);
    std::string value;
    if (const auto known = kNames.find(name); known != kNames.end()) {
      value = known->second;
    } else if (name.size() > 1 && name[0] == '#') {
      const bool hex = name[1] == 'x' || name[1] == 'X';
      char* rest = nullptr;
      const std::string digits(name.substr(hex ? 2 : 1));
      const unsigned long code = std::strtoul(digits.c_str(), &rest, hex ? 16 : 10);
      const bool valid = !digits.empty() && *rest == 0 && code > 0 && code <= 0x10ffff &&
                         (code < 0xd800 || code > 0xdfff);
      if (valid) append_utf8(value, static_cast<uint32_t>(code));
    }
    out += value.empty() ? text.substr(at, end + 1 - at) : value;
    at = end + 1;
  }
  return out;
}

Value striptags(Interpreter& i, const Value& v, const Arguments&) {
  const std::string text = v.text(i.budget());
  i.charge_texts(1, 3 * text.size());
  std::string out;
  // Comments first, then tags; what is not closed stays.
  const auto without = [](const std::string& from, std::string_view open, std::string_view close) {
    std::string rest;
    size_t at = 0;
    for (;;) {
      const size_t begin = from.find(open, at);
      const size_t end = begin == from.npos ? from.npos : from.find(close, begin);
      if (end == from.npos) break;
      rest += from.substr(at, begin - at);
      at = end + close.size();
    }
    return rest + from.substr(at);
  };
  for (const std::string& word :
       split_text(without(without(text, "<!--", "-->"), "<", ">"), "", -1, i.budget()))
    out += (out.empty() ? "" : " ") + word;
  return unescaped(out);
}

Value xmlattr(Interpreter& i, const Value& v, const Arguments& a) {
  const Parameters p(a, "xmlattr", {"autospace"});
  if (!v.is_dict()) fail(ErrorCode::kData, "xmlattr needs a dict, not ", v.type_name());
  const Filter escape = find_filter("escape");
  i.charge_texts(1, 0);
  BudgetedText out(i.budget());
  for (const auto& [key, value] : v.dict().entries) {
    if (value.is_none() || value.is_undefined()) continue;
    const std::string name = key.text(i.budget());
    if (name.find_first_of(" \t\n\v\f\r/>=") != name.npos)
      fail(ErrorCode::kData, "xmlattr: '", name, "' is not a name of an attribute");
    if (!out.empty() || p.boolean(0, true)) out += " ";
    ((out += escape(i, key, {}).string()) += "=\"") += escape(i, value, {}).string();
    out += '"';
  }
  return out.take();
}

}  // namespace

Filter find_text_filter(std::string_view name) {
  static const std::map<std::string_view, Filter> all = {{"filesizeformat", filesizeformat},
                                                         {"slice", slice},
                                                         {"striptags", striptags},
                                                         {"wordwrap", wordwrap},
                                                         {"xmlattr", xmlattr}};
  const auto it = all.find(name);
  return it == all.end() ? nullptr : it->second;
}

}  // namespace paddle::jinja
