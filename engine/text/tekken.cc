// Mistral's tekken.json: byte-level BPE by ranks (tiktoken) with special tokens at the first ids.
#include <algorithm>

#include "base/error.h"
#include "text/load.h"

namespace paddle::tokenizers {

namespace {

std::string bytes_of(const JsonValue& value) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : value.text()) {
    if (c == '=') break;
    const size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) value.reject("not Base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((count += 6) < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xff);
  }
  return out;
}

/// The special tokens of files that do not list them.
constexpr const char* kSpecialTokens[] = {"<unk>",
                                          "<s>",
                                          "</s>",
                                          "[INST]",
                                          "[/INST]",
                                          "[AVAILABLE_TOOLS]",
                                          "[/AVAILABLE_TOOLS]",
                                          "[TOOL_RESULTS]",
                                          "[/TOOL_RESULTS]",
                                          "[TOOL_CALLS]",
                                          "[IMG]",
                                          "<pad>",
                                          "[IMG_BREAK]",
                                          "[IMG_END]",
                                          "[PREFIX]",
                                          "[MIDDLE]",
                                          "[SUFFIX]",
                                          "[SYSTEM_PROMPT]",
                                          "[/SYSTEM_PROMPT]",
                                          "[TOOL_CONTENT]"};

}  // namespace

Tokenizer read_tekken(const Json& content, const std::string& name) {
  const JsonValue file(content, name);
  const JsonValue config = file.at("config");
  const int64_t special = config.at("default_num_special_tokens").integer();
  const int64_t size = config.at("default_vocab_size").integer();
  if (special < 0 || size < special || size > kMaxTokenId)
    config.at("default_vocab_size")
        .reject(str("expected a size from ", special, " to ", kMaxTokenId));

  TokenizerBuilder builder;
  std::vector<std::string> names(static_cast<size_t>(special));
  for (size_t i = 0; i < names.size(); ++i)
    names[i] = i < std::size(kSpecialTokens) ? kSpecialTokens[i] : str("<SPECIAL_", i, ">");
  if (const JsonValue listed = file.get("special_tokens"); !listed.is_null())
    for (const JsonValue& item : listed.items()) {
      const int64_t rank = item.at("rank").integer();
      if (rank < 0 || rank >= special) item.at("rank").reject("is not a special token's");
      names[static_cast<size_t>(rank)] = item.at("token_str").text();
    }
  for (size_t i = 0; i < names.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    builder.add_token({.content = names[i], .id = id, .special = true});
    if (names[i] == "<s>") builder.tokenizer().beginning = id;
    if (names[i] == "</s>") builder.tokenizer().end = id;
  }

  std::vector<float> scores(static_cast<size_t>(size));
  for (const JsonValue& item : file.at("vocab").items()) {
    const int64_t rank = item.at("rank").integer();
    if (rank < 0) item.at("rank").reject("is negative");
    if (rank >= size - special) continue;  // the file may hold more tokens than the model has
    builder.vocabulary().add(bytes_of(item.at("token_bytes")), rank + special);
    scores[static_cast<size_t>(rank + special)] = -static_cast<float>(rank);
  }
  for (int b = 0; b < 256; ++b)
    if (!builder.vocabulary().find(std::string(1, static_cast<char>(b))))
      fail(ErrorCode::kModel, name, ": vocab: byte ", b, " has no token");
  Pattern pattern = [&] {
    try {
      return Pattern(config.at("pattern").text());
    } catch (const Error& e) {
      config.at("pattern").reject(e.message());
    }
  }();
  builder.add(split_pre_tokenizer(std::move(pattern), SplitBehavior::kIsolated, false));
  builder.set_model(make_score_bpe(builder.vocabulary(), std::move(scores),
                                   {.from_bytes = true, .whole_pieces = true}));
  builder.add(fuse_decoder());
  return builder.build();
}

}  // namespace paddle::tokenizers
