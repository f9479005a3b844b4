#include "metrics/text_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/error.h"

namespace paddle::metrics {
namespace {

/// Bytes of the character at the start of a text; a byte that starts none counts by itself.
size_t character_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t wanted = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : 4;
  if (first >= 0x80 && (first < 0xC2 || first > 0xF4)) return 1;
  for (size_t i = 1; i < wanted; ++i)
    if (i >= text.size() || static_cast<unsigned char>(text[i]) >> 6 != 2) return 1;
  return wanted;
}

/// Bytes of the blank at the start of a text, among all that Unicode has; 0 for other characters.
size_t blank_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first == ' ' || (first >= 9 && first <= 13) || (first >= 0x1C && first <= 0x1F)) return 1;
  for (const std::string_view blank :
       {"\xC2\x85", "\xC2\xA0", "\xE1\x9A\x80", "\xE2\x80\xA8", "\xE2\x80\xA9", "\xE2\x80\xAF",
        "\xE2\x81\x9F", "\xE3\x80\x80"})
    if (text.starts_with(blank)) return blank.size();
  // U+2000 … U+200A
  if (text.starts_with("\xE2\x80") && text.size() > 2) {
    const auto last = static_cast<unsigned char>(text[2]);
    if (last >= 0x80 && last <= 0x8A) return 3;
  }
  return 0;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  for (size_t at = 0; at <= text.size();) {
    const size_t blank = at < text.size() ? blank_bytes(text.substr(at)) : 0;
    if (at == text.size() || blank > 0) {
      if (at > begin) out.push_back(text.substr(begin, at - begin));
      if (at == text.size()) break;
      at += blank;
      begin = at;
    } else {
      at += character_bytes(text.substr(at));
    }
  }
  return out;
}

std::string_view stripped(std::string_view text) {
  const auto words = words_of(text);
  if (words.empty()) return {};
  return {words.front().data(),
          static_cast<size_t>(words.back().data() + words.back().size() - words.front().data())};
}

/// Words as jiwer splits texts: at spaces and at runs of two or more blanks of any kind. Another
/// blank, such as a tab or U+00A0, is a character of its word.
std::vector<std::string_view> spaced_words(std::string_view text) {
  std::vector<std::string_view> out;
  text = stripped(text);
  size_t begin = 0, at = 0;
  while (at < text.size()) {
    size_t blanks = 0, end = at;
    while (const size_t bytes = end < text.size() ? blank_bytes(text.substr(end)) : 0) {
      end += bytes;
      ++blanks;
    }
    if (blanks > 1 || (blanks == 1 && text[at] == ' ')) {
      out.push_back(text.substr(begin, at - begin));
      begin = end;
    }
    at = blanks > 0 ? end : at + character_bytes(text.substr(at));
  }
  if (begin < text.size()) out.push_back(text.substr(begin));
  return out;
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (text = stripped(text); !text.empty();) {
    const size_t bytes = character_bytes(text);
    out.push_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return out;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }
/// The signs that 13a always separates.
bool is_separate(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

/// Replaces pairs of characters from left to right, each used once: `match` says which pairs, and
/// `left` to `right` are what comes before, between and after their characters.
template <class Match>
std::string replace_pairs(const std::string& text, Match&& match, std::string_view before,
                          std::string_view between, std::string_view behind) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && match(text[i], text[i + 1])) {
      out += before;
      out += text[i++];
      out += between;
      out += text[i];
      out += behind;
    } else {
      out += text[i];
    }
  }
  return out;
}

using Grams = std::map<std::vector<std::string_view>, int64_t>;

Grams grams_of(const std::vector<std::string>& tokens) {
  Grams out;
  for (size_t n = 1; n <= kBleuOrder; ++n)
    for (size_t i = 0; i + n <= tokens.size(); ++i)
      ++out[std::vector<std::string_view>(tokens.begin() + static_cast<ptrdiff_t>(i),
                                          tokens.begin() + static_cast<ptrdiff_t>(i + n))];
  return out;
}

template <class Split>
ErrorRate errors(const std::vector<std::string>& texts, const std::vector<std::string>& references,
                 Split&& split) {
  if (texts.size() != references.size())
    fail(ErrorCode::kData, texts.size(), " texts against ", references.size(), " references");
  ErrorRate out;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto reference = split(references[i]);
    out.edits += edit_distance(split(texts[i]), reference);
    out.length += static_cast<int64_t>(reference.size());
  }
  return out;
}

}  // namespace

std::vector<std::string> tokens_13a(std::string_view given) {
  std::string text(given);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  if (text.find('&') != std::string::npos) {
    replace_all(text, "&quot;", "\"");
    replace_all(text, "&amp;", "&");
    replace_all(text, "&lt;", "<");
    replace_all(text, "&gt;", ">");
  }
  std::string separated = " ";
  for (const char c : text) {
    if (is_separate(c)) {
      separated += ' ';
      separated += c;
      separated += ' ';
    } else {
      separated += c;
    }
  }
  separated += "  ";
  separated = replace_pairs(
      separated, [](char a, char b) { return !is_digit(a) && is_point(b); }, "", " ", " ");
  separated = replace_pairs(
      separated, [](char a, char b) { return is_point(a) && !is_digit(b); }, " ", " ", "");
  separated = replace_pairs(
      separated, [](char a, char b) { return is_digit(a) && b == '-'; }, "", " ", " ");
  std::vector<std::string> out;
  for (const std::string_view word : words_of(separated)) out.emplace_back(word);
  return out;
}

void BleuCounts::add(const std::vector<std::string>& tokens,
                     const std::vector<std::vector<std::string>>& references) {
  const auto own_length = static_cast<int64_t>(tokens.size());
  Grams allowed;
  int64_t closest = -1;
  for (const auto& reference : references) {
    const auto own = static_cast<int64_t>(reference.size());
    const int64_t gap = std::abs(own - own_length), best = std::abs(closest - own_length);
    if (closest < 0 || gap < best || (gap == best && own < closest)) closest = own;
    for (const auto& [gram, count] : grams_of(reference))
      allowed[gram] = std::max(allowed[gram], count);
  }
  for (const auto& [gram, count] : grams_of(tokens)) {
    total[gram.size() - 1] += count;
    const auto it = allowed.find(gram);
    if (it != allowed.end()) correct[gram.size() - 1] += std::min(count, it->second);
  }
  length += own_length;
  reference_length += closest;
}

BleuScore BleuCounts::score() const {
  BleuScore out;
  out.length = length;
  out.reference_length = reference_length;
  out.precisions.assign(kBleuOrder, 0);
  if (length < reference_length)
    out.brevity_penalty =
        length > 0
            ? std::exp(1 - static_cast<double>(reference_length) / static_cast<double>(length))
            : 0;
  if (std::all_of(correct.begin(), correct.end(), [](int64_t c) { return c == 0; })) return out;
  double smoothing = 1, sum = 0;
  for (size_t n = 0; n < kBleuOrder; ++n) {
    if (total[n] > 0) {
      if (correct[n] == 0) smoothing *= 2;
      const auto right = static_cast<double>(correct[n]), all = static_cast<double>(total[n]);
      out.precisions[n] = correct[n] == 0 ? 100 / (smoothing * all) : 100 * right / all;
    }
    sum += out.precisions[n] > 0 ? std::log(out.precisions[n]) : -9999999999.0;
  }
  out.score = out.brevity_penalty * std::exp(sum / kBleuOrder);
  return out;
}

BleuScore bleu(const std::vector<std::string>& texts,
               const std::vector<std::vector<std::string>>& references) {
  if (references.empty()) fail(ErrorCode::kData, "bleu: no references");
  for (const auto& set : references)
    if (set.size() != texts.size())
      fail(ErrorCode::kData, texts.size(), " texts against ", set.size(), " references");
  BleuCounts counts;
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<std::vector<std::string>> sets;
    for (const auto& set : references) sets.push_back(tokens_13a(set[i]));
    counts.add(tokens_13a(texts[i]), sets);
  }
  return counts.score();
}

std::string bleu_signature(size_t references) {
  return str("nrefs:", references, "|case:mixed|eff:no|tok:13a|smooth:exp");
}

double ErrorRate::rate() const {
  return length > 0 ? static_cast<double>(edits) / static_cast<double>(length)
                    : std::numeric_limits<double>::quiet_NaN();
}

ErrorRate word_errors(const std::vector<std::string>& texts,
                      const std::vector<std::string>& references) {
  return errors(texts, references, spaced_words);
}

ErrorRate character_errors(const std::vector<std::string>& texts,
                           const std::vector<std::string>& references) {
  return errors(texts, references, characters_of);
}

int64_t edit_distance(const std::vector<std::string_view>& a,
                      const std::vector<std::string_view>& b) {
  std::vector<int64_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int64_t>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int64_t diagonal = std::exchange(row[0], static_cast<int64_t>(i));
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace paddle::metrics
