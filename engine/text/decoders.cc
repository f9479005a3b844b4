#include <algorithm>

#include "text/byte_alphabet.h"
#include "text/steps.h"

namespace paddle::tokenizers {

namespace {

std::string joined(const std::vector<std::string>& tokens) {
  std::string out;
  for (const std::string& token : tokens) out += token;
  return out;
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  if (what.empty()) return;
  std::string out;
  size_t copied = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, copied)) {
    out.append(text, copied, at - copied) += with;
    copied = at + what.size();
  }
  text = out.append(text, copied);
}

/// Removes the spaces that English texts do not have.
void clean_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [what, with] : kRules) replace_all(text, what, with);
}

}  // namespace

Decoder byte_level_decoder() {
  return [](std::vector<std::string>& tokens, TextBudget&) {
    std::string bytes;
    // An added token with characters outside of the alphabet is text as it is.
    for (const std::string& token : tokens) bytes += from_byte_characters(token).value_or(token);
    tokens = {unicode::to_valid_utf8(bytes)};
  };
}

Decoder word_piece_decoder(std::string prefix, bool cleanup) {
  return [=](std::vector<std::string>& tokens, TextBudget&) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0) {
        if (tokens[i].starts_with(prefix))
          tokens[i].erase(0, prefix.size());
        else
          tokens[i].insert(0, " ");
      }
      if (cleanup) clean_up(tokens[i]);
    }
  };
}

Decoder metaspace_decoder(std::string replacement, PrependScheme scheme) {
  return [=](std::vector<std::string>& tokens, TextBudget&) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i == 0 && scheme != PrependScheme::kNever) {
        // The space in front of the text, if it is one, was added by the pre-tokenizer.
        if (tokens[i].starts_with(replacement)) tokens[i].erase(0, replacement.size());
      }
      replace_all(tokens[i], replacement, " ");
    }
  };
}

Decoder bpe_decoder(std::string suffix) {
  return [=](std::vector<std::string>& tokens, TextBudget&) {
    for (size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], suffix, i + 1 < tokens.size() ? " " : "");
  };
}

Decoder ctc_decoder(std::string pad, std::string delimiter, bool cleanup) {
  return [=](std::vector<std::string>& tokens, TextBudget&) {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      replace_all(token, pad, "");
      if (!cleanup) continue;
      clean_up(token);
      replace_all(token, delimiter, " ");
    }
    std::erase(tokens, "");
  };
}

Decoder replace_decoder(Pattern pattern, std::string content) {
  const Normalizer replace = replace_normalizer(std::move(pattern), std::move(content));
  return [=](std::vector<std::string>& tokens, TextBudget& budget) {
    for (std::string& token : tokens) replace(token, budget);
  };
}

Decoder byte_fallback_decoder() {
  return [](std::vector<std::string>& tokens, TextBudget&) {
    std::vector<std::string> out;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      std::string text = unicode::to_valid_utf8(bytes);
      // Each byte of malformed UTF-8 becomes a replacement character.
      if (text != bytes) {
        text.clear();
        for (size_t i = 0; i < bytes.size(); ++i) text += "\ufffd";
      }
      out.push_back(text);
      bytes.clear();
    };
    for (const std::string& token : tokens) {
      if (const auto byte = byte_of_token(token)) {
        bytes += static_cast<char>(*byte);
      } else {
        flush();
        out.push_back(token);
      }
    }
    flush();
    tokens = std::move(out);
  };
}

Decoder fuse_decoder() {
  return [](std::vector<std::string>& tokens, TextBudget&) { tokens = {joined(tokens)}; };
}

Decoder strip_decoder(std::string content, size_t start, size_t stop) {
  return [=](std::vector<std::string>& tokens, TextBudget&) {
    for (std::string& token : tokens) {
      if (content.empty()) continue;
      for (size_t i = 0; i < start && token.starts_with(content); ++i)
        token.erase(0, content.size());
      for (size_t i = 0; i < stop && token.ends_with(content); ++i)
        token.resize(token.size() - content.size());
    }
  };
}

Decoder leading_space_decoder(bool all) {
  return [=](std::vector<std::string>& tokens, TextBudget&) {
    constexpr std::string_view kSpace = "▁";
    for (std::string& token : tokens) {
      while (token.starts_with(kSpace)) {
        token.erase(0, kSpace.size());
        if (!all) return;
      }
      if (!token.empty()) return;
    }
  };
}

Decoder rename_decoder(std::string token, std::string text) {
  return [=](std::vector<std::string>& tokens, TextBudget&) {
    std::replace(tokens.begin(), tokens.end(), token, text);
  };
}

Decoder space_decoder() {
  return [](std::vector<std::string>& tokens, TextBudget&) {
    for (size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, " ");
  };
}

}  // namespace paddle::tokenizers
