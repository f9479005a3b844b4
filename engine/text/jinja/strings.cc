#include "text/jinja/strings.h"

#include <utf8proc.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "text/jinja/interpreter.h"
#include "text/unicode.h"

namespace paddle::jinja {

namespace {

/// Python's whitespace between words.
bool is_blank(uint32_t code) {
  return unicode::is_white_space(code) || (code >= 0x1c && code <= 0x1f);
}

bool is_cased_letter(uint32_t code) { return unicode::is_letter(code); }

std::string mapped(std::string_view text, bool (*use_upper)(bool first, bool after_letter)) {
  std::string out;
  bool first = true, after_letter = false;
  unicode::for_each(text, [&](uint32_t code, std::string_view c) {
    if (use_upper(first, after_letter)) {
      if (code == 0xdf)
        out += use_upper(false, true) ? "SS" : "Ss";
      else
        append_utf8(out,
                    static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code))));
    } else if (is_cased_letter(code)) {
      unicode::append_lower(out, code);
    } else {
      out += c;
    }
    first = false;
    after_letter = is_cased_letter(code);
  });
  return out;
}

}  // namespace

std::string upper(std::string_view text) {
  return mapped(text, [](bool, bool) { return true; });
}
std::string lower(std::string_view text) { return unicode::lower(text); }
std::string capitalize(std::string_view text) {
  return mapped(text, [](bool first, bool) { return first; });
}
std::string title(std::string_view text) {
  return mapped(text, [](bool, bool after_letter) { return !after_letter; });
}

std::string strip(std::string_view text, std::string_view set, bool left, bool right) {
  const auto removed = [&](uint32_t code, std::string_view c) {
    return set.empty() ? is_blank(code) : [&] {
      bool found = false;
      unicode::for_each(set, [&](uint32_t, std::string_view s) { found |= s == c; });
      return found;
    }();
  };
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    const Utf8Character c = utf8_character(text, begin);
    const size_t length = std::max<size_t>(c.length, 1);
    if (!removed(c.code, text.substr(begin, length))) break;
    begin += length;
  }
  while (right && begin < end) {
    size_t last = end - 1;
    while (last > begin && (static_cast<unsigned char>(text[last]) & 0xc0) == 0x80) --last;
    if (!removed(utf8_character(text, last).code, text.substr(last, end - last))) break;
    end = last;
  }
  return std::string(text.substr(begin, end - begin));
}

namespace {

/// Adds a part of a text to a list.
void add_part(std::vector<std::string>& out, std::string_view part, TextBudget& budget) {
  budget.charge(part.size() + sizeof(std::string) + 4 * sizeof(Value));
  out.emplace_back(part);
}

}  // namespace

std::vector<std::string> split_text(std::string_view text, std::string_view separator,
                                    int64_t limit, TextBudget& budget) {
  std::vector<std::string> out;
  if (!separator.empty()) {
    while (limit != 0) {
      const size_t at = text.find(separator);
      if (at == text.npos) break;
      add_part(out, text.substr(0, at), budget);
      text.remove_prefix(at + separator.size());
      --limit;
    }
    add_part(out, text, budget);
    return out;
  }
  size_t begin = 0;
  const auto skip = [&](bool blank) {
    while (begin < text.size()) {
      const Utf8Character c = utf8_character(text, begin);
      if (is_blank(c.code) != blank) break;
      begin += std::max<size_t>(c.length, 1);
    }
  };
  for (skip(true); begin < text.size(); skip(true)) {
    if (limit-- == 0) {
      add_part(out, text.substr(begin), budget);
      break;
    }
    const size_t word = begin;
    skip(false);
    add_part(out, text.substr(word, begin - word), budget);
  }
  return out;
}

std::vector<std::string> split_right(std::string_view text, std::string_view separator,
                                     int64_t limit, TextBudget& budget) {
  if (limit < 0) return split_text(text, separator, -1, budget);
  if (separator.empty()) fail(ErrorCode::kData, "rsplit() with a limit needs a separator");
  std::vector<std::string> out;
  while (limit-- > 0) {
    const size_t at = text.rfind(separator);
    if (at == text.npos) break;
    add_part(out, text.substr(at + separator.size()), budget);
    text = text.substr(0, at);
  }
  add_part(out, text, budget);
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends, TextBudget& budget) {
  std::vector<std::string> out;
  size_t begin = 0, at = 0;  // of the line, and of the character
  bool after_return = false;
  unicode::for_each(text, [&](uint32_t code, std::string_view c) {
    const size_t end = at + c.size();
    if (after_return && code == '\n') {
      if (keep_ends) out.back() += c;
      begin = end;
    } else if ((code >= 0xa && code <= 0xd) || (code >= 0x1c && code <= 0x1e) || code == 0x85 ||
               code == 0x2028 || code == 0x2029) {
      add_part(out, text.substr(begin, (keep_ends ? end : at) - begin), budget);
      begin = end;
    }
    after_return = code == '\r';
    at = end;
  });
  if (begin < text.size()) add_part(out, text.substr(begin), budget);
  return out;
}

std::string replace_text(std::string_view text, std::string_view what, std::string_view with,
                         int64_t limit, TextBudget& budget) {
  BudgetedText out(budget);
  if (what.empty()) {  // between all characters
    unicode::for_each(text, [&](uint32_t, std::string_view c) {
      if (limit-- != 0) out += with;
      out += c;
    });
    if (limit != 0) out += with;
    return out.take();
  }
  size_t copied = 0;
  for (size_t at = text.find(what); at != text.npos && limit != 0;
       at = text.find(what, copied), --limit) {
    (out += text.substr(copied, at - copied)) += with;
    copied = at + what.size();
  }
  out += text.substr(copied);
  return out.take();
}

std::string brace_format(std::string_view format, const Arguments& arguments, TextBudget& budget) {
  BudgetedText out(budget);
  size_t automatic = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    if ((format[i] == '{' || format[i] == '}') && i + 1 < format.size() &&
        format[i + 1] == format[i]) {
      out += format[i++];
      continue;
    }
    if (format[i] != '{') {
      if (format[i] == '}') fail(ErrorCode::kData, "format(): a '}' without its '{'");
      out += format[i];
      continue;
    }
    const size_t end = format.find('}', i);
    if (end == format.npos) fail(ErrorCode::kData, "format(): a '{' without its '}'");
    const std::string name(format.substr(i + 1, end - i - 1));
    i = end;
    if (name.find_first_of(".[:!{") != name.npos)
      fail(ErrorCode::kData, "format(): the field '{", name, "}' is not supported");
    const bool number =
        !name.empty() && name.size() < 5 &&
        std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (name.empty() || number) {
      const size_t at = name.empty() ? automatic++ : std::stoul(name);
      if (at >= arguments.positional.size()) fail(ErrorCode::kData, "format(): too few arguments");
      out += arguments.positional[at].text(budget);
      continue;
    }
    const auto it = std::find_if(arguments.named.begin(), arguments.named.end(),
                                 [&](const auto& a) { return a.first == name; });
    if (it == arguments.named.end()) fail(ErrorCode::kData, "format(): no argument '", name, "'");
    out += it->second.text(budget);
  }
  return out.take();
}

std::string indent_text(std::string_view text, std::string_view by, bool first, bool blank,
                        TextBudget& budget) {
  const std::vector<std::string> lines = split_lines(std::string(text) + "\n", false, budget);
  BudgetedText out(budget);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i) out += '\n';
    if (i == 0 ? first : blank || !lines[i].empty()) out += by;
    out += lines[i];
  }
  return out.take();
}

std::string pad_text(std::string_view text, int64_t width, std::string_view fill, int side,
                     TextBudget& budget) {
  const int64_t missing = std::max<int64_t>(std::max<int64_t>(width, 0) - character_count(text), 0);
  // Python puts the odd character of a centered text on the left where the width is odd.
  const int64_t left = side < 0 ? 0 : side > 0 ? missing : missing / 2 + (missing & width & 1);
  BudgetedText out(budget);
  out.repeat(fill, static_cast<uint64_t>(left));
  out += text;
  out.repeat(fill, static_cast<uint64_t>(missing - left));
  return out.take();
}

}  // namespace paddle::jinja
