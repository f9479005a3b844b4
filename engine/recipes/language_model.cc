// A text file, continued by a small GPT: character by character, byte by byte, or by subwords.

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "data/vocabulary.h"
#include "recipes/recipes.h"
#include "text/bpe_trainer.h"
#include "text/load.h"
#include "text/sections.h"

namespace paddle::recipes {

namespace {

/// The tokens of a text: their kind and number.
struct TokenProfile {
  std::string unit = {};    ///< "character by character"
  std::string option = {};  ///< of the data, as YAML
  std::string found = {};   ///< for the user
  int64_t vocabulary = 0;   ///< different tokens
  int64_t count = 0;        ///< tokens in the text
};

/// Text that is not UTF-8 is read as bytes.
TokenProfile profile_characters(const RecipeRequest& request, const std::string& text) {
  const auto invalid = data::invalid_utf8(text);
  if (invalid && request.tokens == "characters")
    fail(ErrorCode::kData, request.data, ": byte ", *invalid,
         " is not UTF-8; convert the file (iconv -t UTF-8) or use --tokens bytes");
  const bool bytes = invalid || request.tokens == "bytes";
  std::set<std::string> tokens;
  for (size_t i = 0; i < text.size() && !bytes;) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    tokens.insert(text.substr(i, length));
    i += length;
  }
  const int64_t words = bytes ? 256 : static_cast<int64_t>(tokens.size());
  const auto size = static_cast<int64_t>(text.size());
  return {.unit = bytes ? "byte by byte" : "character by character",
          .option = bytes ? "\n    level: bytes" : "",
          .found = str(size, " bytes, ", words,
                       !bytes    ? " different characters"
                       : invalid ? " byte values (the text is not UTF-8)"
                                 : " byte values"),
          .vocabulary = words,
          .count = size};
}

/// Trains a tokenizer on the text, which becomes a file next to the config.
TokenProfile profile_subwords(const RecipeRequest& request, const std::string& text,
                              RecipeResult& out) {
  // A token for some hundred bytes: fewer examples of one teach little.
  constexpr int64_t kBytesPerToken = 256, kMin = 512, kMax = 8000;
  const auto size = static_cast<int64_t>(text.size());
  tokenizers::BpeTrainer trainer(
      {.vocabulary_size = request.vocabulary_size > 0
                              ? request.vocabulary_size
                              : std::clamp(size / kBytesPerToken, kMin, kMax)});
  trainer.add(text);
  const tokenizers::TrainedBpe trained = trainer.train();
  const std::string json = tokenizers::tokenizer_json(trained);
  const std::string name = run_name(request) + "-tokenizer.json";
  out.files.emplace_back((std::filesystem::path(request.output).parent_path() / name).string(),
                         json);
  const auto tokenizer =
      tokenizers::read_tokenizer_json(parse_json(json, "tokenizer.json"), "tokenizer.json");
  TokenProfile profile{.unit = "by the subwords of a byte-level BPE tokenizer",
                       .option = "\n    tokenizer: " + yaml_text(name)};
  tokenizers::encode_sections(tokenizer, text, {}, [&](std::span<const tokenizers::TokenId> ids) {
    profile.count += static_cast<int64_t>(ids.size());
  });
  profile.vocabulary = tokenizer.vocabulary_size();
  profile.found =
      str(size, " bytes, ", profile.count, " subwords, ", profile.vocabulary, " different ones");
  return profile;
}

}  // namespace

RecipeResult language_model(const RecipeRequest& request) {
  if (is_directory(request.data)) fail(ErrorCode::kData, request.data, ": expected a text file");
  const bool subwords = request.tokens == "bpe";
  if (!subwords && request.vocabulary_size > 0)
    fail(ErrorCode::kUsage, "--vocabulary-size is for --tokens bpe");
  const std::string text = read_file(request.data, uint64_t{1} << 31, ErrorCode::kData);
  if (text.size() < 2000)
    fail(ErrorCode::kData, request.data, ": expected a text of at least 2000 characters, found ",
         text.size());
  RecipeResult out;
  const TokenProfile profile =
      subwords ? profile_subwords(request, text, out) : profile_characters(request, text);
  if (profile.count < 2000)
    fail(ErrorCode::kData, request.data, ": the text has ", profile.count,
         " subwords, expected at least 2000; use --tokens characters");
  const int64_t words = profile.vocabulary;
  const bool small = request.small;
  const int64_t context = small ? 32 : profile.count > 100000 ? 128 : 64;
  const std::string name = run_name(request);
  const auto part = [&](const char* which, const char* windows) {
    return str("  ", which, ":\n    kind: text\n    path: ", data_path(request), profile.option,
               "\n    context: ", context, "\n    windows: ", windows,
               "\n    split: {train: 0.9, valid: 0.1}\n    part: ", which,
               "\n    split_in_order: true\n");
  };
  out.found = {profile.found};
  out.config = str("# A small GPT on a text, ", profile.unit, R"(.
#   paddle-train )",
                   std::filesystem::path(request.output).filename().string(), R"(        trains
#   paddle-infer runs/)",
                   name, R"(/model --prompt "Once" --length 200
name: )",
                   name, R"(

params: {layers: )",
                   small ? 2 : 4, ", width: ", small ? 64 : 128, R"(}
model:
  params: {layers: 4, heads: 4, width: 128, vocab_size: )",
                   words, ", positions: ", context, R"(, dropout: 0.1}
  inputs: {tokens: "int64[batch, length]"}
  blocks:
    attention(x): |
      qkv = reshape(linear(x, 3 * width), [batch, length, 3, heads, width // heads])
      y = scaled_dot_product_attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], is_causal=true)
      return linear(reshape(y, [batch, length, width]), width)
    layer(x): |
      x = x + dropout(attention(layer_norm(x)), dropout)
      return x + dropout(linear(gelu(linear(layer_norm(x), 4 * width)), width), dropout)
  model: |
    x = embedding(tokens, vocab_size, width, weight_init=normal(0, 0.02))
    p = param("positions", [positions, width], init=normal(0, 0.02))
    x = x + p[:tokens.shape[1]]
    for i in range(layers):
      x = layer(x)
    logits = linear(layer_norm(x), vocab_size)
  outputs: [logits]

loss: cross_entropy(logits, targets)
metrics:
  perplexity: perplexity(logits, targets)

optimizer: {name: adamw, lr: )",
                   small ? "5e-3" : "2e-3", R"(, beta2: 0.99, weight_decay: 0.1}
schedule: {name: cosine, warmup: )",
                   small ? 10 : 100, R"(, end_factor: 0.02}
clip: {global_norm: 1.0}

data:
  batch_size: 16
)",
                   part("train", "random"), part("valid", "consecutive"),
                   "\ntrain:\n  steps: ", small ? 200 : 2000, "\n  log_every: ", small ? 20 : 50,
                   "\n  evaluate_every: ", small ? 100 : 500,
                   "\n  checkpoint_every: ", small ? 100 : 500, "\n");
  return out;
}

}  // namespace paddle::recipes
