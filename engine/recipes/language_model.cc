// A text file, continued character by character by a small GPT.

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "data/vocabulary.h"
#include "recipes/recipes.h"

namespace paddle::recipes {

RecipeResult character_language_model(const RecipeRequest& request) {
  if (is_directory(request.data)) fail(ErrorCode::kData, request.data, ": expected a text file");
  const std::string text = read_file(request.data, uint64_t{1} << 31, ErrorCode::kData);
  // Text that is not UTF-8 is read as bytes.
  const bool bytes = data::invalid_utf8(text).has_value();
  std::set<std::string> tokens;
  for (size_t i = 0; i < text.size() && !bytes;) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    tokens.insert(text.substr(i, length));
    i += length;
  }
  const int64_t words = bytes ? 256 : static_cast<int64_t>(tokens.size());
  if (text.size() < 2000)
    fail(ErrorCode::kData, request.data, ": expected a text of at least 2000 characters, found ",
         text.size());
  const int64_t context = text.size() > 100000 ? 128 : 64;
  const std::string name = run_name(request);
  const auto part = [&](const char* which, const char* windows) {
    return str(
        "  ", which, ":\n    kind: text\n    path: ", data_path(request),
        bytes ? "\n    level: bytes" : "", "\n    context: ", context, "\n    windows: ", windows,
        "\n    split: {train: 0.9, valid: 0.1}\n    part: ", which, "\n    split_in_order: true\n");
  };
  RecipeResult out;
  out.found = {str(text.size(), " bytes, ", words,
                   bytes ? " byte values (the text is not UTF-8)" : " different characters")};
  out.config = str(R"(# A small GPT on a text, character by character.
#   paddle-train )",
                   std::filesystem::path(request.output).filename().string(), R"(        trains
#   paddle-infer runs/)",
                   name, R"(/model --prompt "Once" --length 200
name: )",
                   name, R"(

params: {layers: 4, width: 128}
model:
  params: {layers: 4, heads: 4, width: 128, words: )",
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
    x = embedding(tokens, words, width, weight_init=normal(0, 0.02))
    p = param("positions", [positions, width], init=normal(0, 0.02))
    x = x + p[:tokens.shape[1]]
    for i in range(layers):
      x = layer(x)
    logits = linear(layer_norm(x), words)
  outputs: [logits]

loss: cross_entropy(logits, targets)
metrics:
  perplexity: perplexity(logits, targets)

optimizer: {name: adamw, lr: 2e-3, beta2: 0.99, weight_decay: 0.1}
schedule: {name: cosine, warmup: 100, end_factor: 0.02}
clip: {global_norm: 1.0}

data:
  batch_size: 16
)",
                   part("train", "random"), part("valid", "consecutive"), R"(
train:
  steps: 2000
  log_every: 50
  evaluate_every: 500
  checkpoint_every: 500
)");
  return out;
}

}  // namespace paddle::recipes
