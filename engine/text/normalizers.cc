#include <algorithm>

#include "base/error.h"
#include "text/byte_alphabet.h"
#include "text/steps.h"

namespace paddle::tokenizers {

namespace {

constexpr std::string_view kSpace = "▁";  // U+2581

/// Rewrites each code point by `append(out, code, characters)`, with at most `growth` bytes for
/// one.
template <class Append>
std::string rewritten(std::string_view text, TextBudget& budget, uint64_t growth, Append&& append) {
  budget.charge(text.size(), growth);
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  unicode::for_each(text, [&](uint32_t code, std::string_view c) { append(out, code, c); });
  return out;
}

/// Whether BERT removes this character.
bool is_bert_control(uint32_t code) {
  return code == 0 || code == 0xfffd ||
         (code != '\t' && code != '\n' && code != '\r' && unicode::is_other(code) &&
          !unicode::is_unassigned(code));
}

std::string normalized(std::string_view text, unicode::Form form, TextBudget& budget) {
  constexpr uint64_t kMaxLength = 11;  // U+FDFA: 3 bytes become 33
  budget.charge(text.size(), kMaxLength);
  return unicode::normalize(text, form);
}

std::string lowered(std::string_view text, TextBudget& budget) {
  budget.charge(text.size(), 2);
  return unicode::lower(text);
}

}  // namespace

Normalizer bert_normalizer(const BertNormalizerOptions& options) {
  return [options](std::string& text, TextBudget& budget) {
    if (options.clean_text)
      text = rewritten(text, budget, 1, [](std::string& out, uint32_t code, std::string_view c) {
        if (is_bert_control(code)) return;
        out += unicode::is_white_space(code) ? std::string_view(" ") : c;
      });
    if (options.handle_chinese_chars)
      text = rewritten(text, budget, 2, [](std::string& out, uint32_t code, std::string_view c) {
        if (unicode::is_ideograph(code))
          ((out += ' ') += c) += ' ';
        else
          out += c;
      });
    if (options.strip_accents)
      text = rewritten(normalized(text, unicode::Form::kNfd, budget), budget, 1,
                       [](std::string& out, uint32_t code, std::string_view c) {
                         if (!unicode::is_nonspacing_mark(code)) out += c;
                       });
    if (options.lowercase) text = lowered(text, budget);
  };
}

Normalizer unicode_normalizer(unicode::Form form) {
  return [form](std::string& text, TextBudget& budget) { text = normalized(text, form, budget); };
}

Normalizer lowercase_normalizer() {
  return [](std::string& text, TextBudget& budget) { text = lowered(text, budget); };
}

Normalizer strip_normalizer(bool left, bool right) {
  return [left, right](std::string& text, TextBudget&) {
    size_t begin = text.size(), end = 0, i = 0;
    unicode::for_each(text, [&](uint32_t code, std::string_view c) {
      if (!unicode::is_white_space(code)) {
        begin = std::min(begin, i);
        end = i + c.size();
      }
      i += c.size();
    });
    if (right) text.resize(end);
    if (left) text.erase(0, std::min(begin, text.size()));
  };
}

Normalizer strip_accents_normalizer() {
  return [](std::string& text, TextBudget& budget) {
    text = rewritten(text, budget, 1, [](std::string& out, uint32_t code, std::string_view c) {
      if (!unicode::is_mark(code)) out += c;
    });
  };
}

Normalizer nmt_normalizer() {
  return [](std::string& text, TextBudget& budget) {
    text =
        rewritten(text, budget, 1, [](std::string& out, uint32_t c, std::string_view characters) {
          if ((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f ||
              c == 0x9f)
            return;
          const bool space = c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
                             (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 ||
                             c == 0x2581 || c == 0xfeff || c == 0xfffd;
          out += space ? std::string_view(" ") : characters;
        });
  };
}

Normalizer replace_normalizer(Pattern pattern, std::string content) {
  return [pattern = std::move(pattern), content = std::move(content)](std::string& text,
                                                                      TextBudget& budget) {
    BudgetedText out(budget);
    const std::string_view from = text;
    size_t copied = 0;
    pattern.for_each_match(text, [&](size_t begin, size_t end) {
      (out += from.substr(copied, begin - copied)) += content;
      copied = end;
    });
    out += from.substr(copied);
    text = out.take();
  };
}

Normalizer prepend_normalizer(std::string prefix) {
  return [prefix = std::move(prefix)](std::string& text, TextBudget& budget) {
    if (text.empty()) return;
    budget.charge(prefix.size());
    text.insert(0, prefix);
  };
}

Normalizer byte_level_normalizer() {
  return [](std::string& text, TextBudget& budget) {
    budget.charge(text.size(), 2);
    text = to_byte_characters(text);
  };
}

Normalizer squeeze_spaces_normalizer() {
  return [](std::string& text, TextBudget& budget) {
    budget.charge(text.size());
    std::string out;
    for (const char c : text)
      if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
    const auto remove_end = [&](std::string_view space) {
      if (!out.ends_with(space)) return false;
      out.resize(out.size() - space.size());
      return true;
    };
    while (remove_end(" ") || remove_end(kSpace)) {
    }
    text = std::move(out);
  };
}

Normalizer escape_spaces_normalizer(bool prefix) {
  return [prefix](std::string& text, TextBudget& budget) {
    budget.charge(text.size() + 1, kSpace.size());
    std::string out(prefix && !text.empty() ? kSpace : "");
    for (const char c : text) c == ' ' ? out += kSpace : out += c;
    text = std::move(out);
  };
}

namespace {

/// SentencePiece's table: a double-array trie (Darts) over texts, whose values are offsets of
/// zero-terminated replacements.
class Charsmap {
 public:
  explicit Charsmap(std::string_view blob) {
    const auto word = [&](size_t at) {
      uint32_t value = 0;
      for (size_t b = 4; b-- > 0;) value = value << 8 | static_cast<unsigned char>(blob[at + b]);
      return value;
    };
    if (blob.size() < 4 || word(0) > blob.size() - 4 || word(0) % 4 != 0)
      fail(ErrorCode::kModel, "the precompiled table of the normalizer is damaged");
    const size_t bytes = word(0);
    for (size_t i = 0; i < bytes; i += 4) units_.push_back(word(4 + i));
    replacements_ = blob.substr(4 + bytes);
  }

  /// Calls `callback(length, replacement)` for each entry that is a prefix of `text`, the shortest
  /// first.
  template <class Callback>
  void for_each_prefix(std::string_view text, Callback&& callback) const {
    if (units_.empty()) return;
    size_t node = offset(units_[0]);
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if (byte == 0) return;
      node ^= byte;
      if (node >= units_.size() || (units_[node] & 0x800000ffU) != byte) return;
      const uint32_t unit = units_[node];
      node ^= offset(unit);
      if ((unit >> 8 & 1) && node < units_.size()) {
        const size_t begin = units_[node] & 0x7fffffffU;
        if (begin >= replacements_.size()) continue;
        const size_t end = std::min(replacements_.find('\0', begin), replacements_.size());
        callback(i + 1, std::string_view(replacements_).substr(begin, end - begin));
      }
    }
  }

 private:
  static size_t offset(uint32_t unit) { return (unit >> 10) << ((unit & 0x200U) >> 6); }
  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace

Normalizer precompiled_normalizer(std::string_view blob, bool longest_match) {
  if (blob.empty()) return [](std::string&, TextBudget&) {};
  const auto map = std::make_shared<const Charsmap>(blob);
  if (longest_match)
    return [map](std::string& text, TextBudget& budget) {
      BudgetedText out(budget);
      for (size_t i = 0; i < text.size();) {
        size_t length = std::max<size_t>(utf8_character(text, i).length, 1);
        std::string_view replacement = std::string_view(text).substr(i, length);
        map->for_each_prefix(std::string_view(text).substr(i), [&](size_t n, std::string_view r) {
          length = n;
          replacement = r;
        });
        out += replacement;
        i += length;
      }
      text = unicode::to_valid_utf8(out.take());
    };
  return [map](std::string& text, TextBudget& budget) {
    BudgetedText out(budget);
    // Hugging Face takes the shortest entry that is a prefix, and with it replaces all of `part`.
    const auto replace = [&](std::string_view part) {
      bool found = false;
      map->for_each_prefix(part, [&](size_t, std::string_view r) {
        if (!found) out += r;
        found = true;
      });
      return found;
    };
    for (size_t i = 0; i < text.size();) {
      const size_t length = unicode::grapheme_length(text, i);
      const std::string_view cluster = std::string_view(text).substr(i, length);
      i += length;
      if (cluster.size() < 6 && replace(cluster)) continue;
      unicode::for_each(cluster, [&](uint32_t, std::string_view character) {
        if (!replace(character)) out += character;
      });
    }
    text = unicode::to_valid_utf8(out.take());
  };
}

}  // namespace paddle::tokenizers
