#include "text/jinja/strings.h"

#include <utf8proc.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "text/jinja/interpreter.h"
#include "text/unicode.h"

namespace paddle::jinja {

namespace {

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
    return set.empty() ? unicode::is_white_space(code) || (code >= 0x1c && code <= 0x1f) : [&] {
      bool found = false;
      unicode::for_each(set, [&](uint32_t, std::string_view s) { found |= s == c; });
      return found;
    }();
  };
  const auto letters = characters(text);
  size_t begin = 0, end = letters.size();
  while (left && begin < end && removed(utf8_character(letters[begin], 0).code, letters[begin]))
    ++begin;
  while (right && begin < end &&
         removed(utf8_character(letters[end - 1], 0).code, letters[end - 1]))
    --end;
  std::string out;
  for (size_t i = begin; i < end; ++i) out += letters[i];
  return out;
}

std::vector<std::string> split_text(std::string_view text, std::string_view separator,
                                    int64_t limit) {
  std::vector<std::string> out;
  if (!separator.empty()) {
    while (limit != 0) {
      const size_t at = text.find(separator);
      if (at == text.npos) break;
      out.emplace_back(text.substr(0, at));
      text.remove_prefix(at + separator.size());
      --limit;
    }
    out.emplace_back(text);
    return out;
  }
  std::string rest = strip(text, "", true, false);
  while (!rest.empty()) {
    if (limit-- == 0) {
      out.push_back(rest);
      break;
    }
    size_t end = 0;
    bool found = false;
    unicode::for_each(rest, [&](uint32_t code, std::string_view c) {
      found |= unicode::is_white_space(code);
      if (!found) end += c.size();
    });
    out.push_back(rest.substr(0, end));
    rest = strip(rest.substr(end), "", true, false);
  }
  return out;
}

std::vector<std::string> split_right(std::string_view text, std::string_view separator,
                                     int64_t limit) {
  if (limit < 0) return split_text(text, separator, -1);
  if (separator.empty()) fail(ErrorCode::kData, "rsplit() with a limit needs a separator");
  std::vector<std::string> out;
  while (limit-- > 0) {
    const size_t at = text.rfind(separator);
    if (at == text.npos) break;
    out.emplace_back(text.substr(at + separator.size()));
    text = text.substr(0, at);
  }
  out.emplace_back(text);
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> out;
  std::string line;
  bool open = false, after_return = false;
  unicode::for_each(text, [&](uint32_t code, std::string_view c) {
    if (after_return && code == '\n') {
      if (keep_ends) out.back() += c;
      after_return = false;
      return;
    }
    after_return = code == '\r';
    const bool end = (code >= 0xa && code <= 0xd) || (code >= 0x1c && code <= 0x1e) ||
                     code == 0x85 || code == 0x2028 || code == 0x2029;
    if (!end || keep_ends) line += c;
    open = !end;
    if (end) out.push_back(std::exchange(line, ""));
  });
  if (open) out.push_back(line);
  return out;
}

std::string replace_text(std::string_view text, std::string_view what, std::string_view with,
                         int64_t limit) {
  std::string out;
  if (what.empty()) {  // between all characters
    for (const std::string_view c : characters(text)) {
      if (limit-- != 0) out += with;
      out += c;
    }
    if (limit != 0) out += with;
    return out;
  }
  size_t copied = 0;
  for (size_t at = text.find(what); at != text.npos && limit != 0;
       at = text.find(what, copied), --limit) {
    (out += text.substr(copied, at - copied)) += with;
    copied = at + what.size();
  }
  return out += text.substr(copied);
}

std::string brace_format(std::string_view format, const Arguments& arguments) {
  std::string out;
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
      out += arguments.positional[at].text();
      continue;
    }
    const auto it = std::find_if(arguments.named.begin(), arguments.named.end(),
                                 [&](const auto& a) { return a.first == name; });
    if (it == arguments.named.end()) fail(ErrorCode::kData, "format(): no argument '", name, "'");
    out += it->second.text();
  }
  return out;
}

std::string indent_text(std::string_view text, std::string_view by, bool first, bool blank) {
  const std::vector<std::string> lines = split_lines(std::string(text) + "\n", false);
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i) out += '\n';
    if (i == 0 ? first : blank || !lines[i].empty()) out += by;
    out += lines[i];
  }
  return out;
}

std::string pad_text(std::string_view text, int64_t width, std::string_view fill, int side) {
  const int64_t missing =
      std::max<int64_t>(std::min<int64_t>(width, 1 << 20) - character_count(text), 0);
  // Python puts the odd character of a centered text on the left where the width is odd.
  const int64_t left = side < 0 ? 0 : side > 0 ? missing : missing / 2 + (missing & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += text;
  for (int64_t i = left; i < missing; ++i) out += fill;
  return out;
}

}  // namespace paddle::jinja
