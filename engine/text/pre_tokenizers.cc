#include <algorithm>

#include "text/byte_alphabet.h"
#include "text/steps.h"

namespace paddle::tokenizers {

namespace {

/// Memory of a piece while a text is cut.
constexpr uint64_t kPieceBytes = 64;

using Matches = std::vector<std::pair<size_t, size_t>>;

/// Replaces each piece by what `cut(piece, out, budget)` appends.
template <class Cut>
PreTokenizer each_piece(Cut cut) {
  return [cut = std::move(cut)](Pieces& pieces, TextBudget& budget) {
    Pieces out;
    budget.charge(pieces.size(), kPieceBytes);
    out.reserve(pieces.size());
    for (const Piece& piece : pieces) cut(piece, out, budget);
    pieces = std::move(out);
  };
}

bool is_bert_punctuation(uint32_t c) {
  const bool ascii = (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
                     (c >= '{' && c <= '~');
  return ascii || unicode::is_punctuation(c);
}

std::string replaced(std::string_view text, char what, std::string_view with, TextBudget& budget) {
  BudgetedText out(budget);
  for (const char c : text) c == what ? out += with : out += c;
  return out.take();
}

}  // namespace

void split_piece(const Piece& piece, const std::vector<std::pair<size_t, size_t>>& matches,
                 SplitBehavior behavior, bool invert, Pieces& out) {
  struct Part {
    size_t begin, end;
    bool match;
  };
  std::vector<Part> parts;
  size_t copied = 0;
  for (const auto& [begin, end] : matches) {
    if (begin > copied) parts.push_back({copied, begin, invert});
    if (end > begin) parts.push_back({begin, end, !invert});
    copied = end;
  }
  if (copied < piece.text.size()) parts.push_back({copied, piece.text.size(), invert});

  std::vector<Part> merged;
  switch (behavior) {
    case SplitBehavior::kRemoved:
      for (const Part& part : parts)
        if (!part.match) merged.push_back(part);
      break;
    case SplitBehavior::kIsolated:
      merged = std::move(parts);
      break;
    case SplitBehavior::kContiguous:
      for (const Part& part : parts)
        if (!merged.empty() && merged.back().match == part.match)
          merged.back().end = part.end;
        else
          merged.push_back(part);
      break;
    case SplitBehavior::kMergedWithPrevious: {
      bool after_match = false;
      for (const Part& part : parts) {
        if (part.match && !after_match && !merged.empty())
          merged.back().end = part.end;
        else
          merged.push_back(part);
        after_match = part.match;
      }
      break;
    }
    case SplitBehavior::kMergedWithNext: {
      bool before_match = false;
      for (size_t i = parts.size(); i-- > 0;) {
        if (parts[i].match && !before_match && !merged.empty())
          merged.back().begin = parts[i].begin;
        else
          merged.push_back(parts[i]);
        before_match = parts[i].match;
      }
      std::reverse(merged.begin(), merged.end());
      break;
    }
  }
  for (const Part& part : merged)
    out.push_back({piece.text.substr(part.begin, part.end - part.begin),
                   piece.begins_text && part.begin == 0});
}

PreTokenizer split_pre_tokenizer(Pattern pattern, SplitBehavior behavior, bool invert) {
  return each_piece([=](const Piece& piece, Pieces& out, TextBudget& budget) {
    Matches matches;
    pattern.for_each_match(piece.text, [&](size_t begin, size_t end) {
      budget.charge(kPieceBytes);
      matches.emplace_back(begin, end);
    });
    split_piece(piece, matches, behavior, invert, out);
  });
}

PreTokenizer character_pre_tokenizer(std::function<bool(uint32_t)> is_match,
                                     SplitBehavior behavior) {
  return each_piece([is_match = std::move(is_match), behavior](const Piece& piece, Pieces& out,
                                                               TextBudget& budget) {
    Matches matches;
    size_t i = 0;
    unicode::for_each(piece.text, [&](uint32_t code, std::string_view c) {
      if (is_match(code)) {
        budget.charge(kPieceBytes);
        matches.emplace_back(i, i + c.size());
      }
      i += c.size();
    });
    split_piece(piece, matches, behavior, false, out);
  });
}

PreTokenizer bert_pre_tokenizer() {
  const auto spaces = character_pre_tokenizer(unicode::is_white_space, SplitBehavior::kRemoved);
  const auto marks = punctuation_pre_tokenizer(SplitBehavior::kIsolated);
  return [=](Pieces& pieces, TextBudget& budget) {
    spaces(pieces, budget);
    marks(pieces, budget);
  };
}

PreTokenizer punctuation_pre_tokenizer(SplitBehavior behavior) {
  return character_pre_tokenizer(is_bert_punctuation, behavior);
}

const Pattern& gpt2_pattern() {
  static const Pattern pattern(
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
  return pattern;
}

PreTokenizer byte_level_pre_tokenizer(bool add_prefix_space, bool use_pattern) {
  const auto split = split_pre_tokenizer(gpt2_pattern(), SplitBehavior::kIsolated, false);
  return [=](Pieces& pieces, TextBudget& budget) {
    if (add_prefix_space)
      for (Piece& piece : pieces)
        if (!piece.text.starts_with(' ')) piece.text.insert(0, " ");
    if (use_pattern) split(pieces, budget);
    for (Piece& piece : pieces) {
      budget.charge(piece.text.size(), 2);
      piece.text = to_byte_characters(piece.text);
    }
  };
}

PreTokenizer whitespace_pre_tokenizer() {
  // \w+|[^\w\s]+ with the \w of Rust's expressions, which has the joiners too.
  return split_pre_tokenizer(Pattern(R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}]+|)"
                                     R"([^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}\s]+)"),
                             SplitBehavior::kRemoved, true);
}

PreTokenizer metaspace_pre_tokenizer(std::string replacement, PrependScheme scheme, bool split) {
  const auto cut =
      split_pre_tokenizer(Pattern::literal(replacement), SplitBehavior::kMergedWithNext, false);
  return [=](Pieces& pieces, TextBudget& budget) {
    for (Piece& piece : pieces) {
      piece.text = replaced(piece.text, ' ', replacement, budget);
      budget.charge(replacement.size());
      const bool prepend = scheme == PrependScheme::kAlways ||
                           (scheme == PrependScheme::kFirst && piece.begins_text);
      if (prepend && !piece.text.starts_with(replacement)) piece.text.insert(0, replacement);
    }
    if (split) cut(pieces, budget);
  };
}

PreTokenizer fixed_length_pre_tokenizer(size_t characters) {
  return each_piece([=](const Piece& piece, Pieces& out, TextBudget& budget) {
    size_t count = 0;
    unicode::for_each(piece.text, [&](uint32_t, std::string_view c) {
      if (count++ % characters == 0) {
        budget.charge(kPieceBytes);
        out.push_back({"", piece.begins_text && count == 1});
      }
      out.back().text += c;
    });
  });
}

}  // namespace paddle::tokenizers
