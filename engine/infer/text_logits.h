#pragma once
// Logits of the token that follows a text: by running the model on the whole text, or, with a model
// whose function `step` caches keys and values, on the tokens that are new.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "infer/text_codec.h"
#include "program/model.h"

namespace paddle::infer {

/// The inputs of a language model: its tokens, and optional segments and positions.
struct TextInputs {
  std::string tokens;
  std::optional<int64_t> length;  ///< if the model takes texts of one length only
};
/// kUsage for a model with other inputs.
TextInputs text_inputs(const program::Model& model);

class TextLogits {
 public:
  virtual ~TextLogits() = default;
  /// Logits of the token after `tokens`, of which the model sees those from `first` on. The tokens
  /// of successive calls continue each other. kModel where there is none for each word, or a NaN.
  virtual std::vector<double> of(std::span<const int64_t> tokens, size_t first) = 0;
};

/// A model has a function for caches if `step` takes the int64 vectors tokens, positions (or
/// token_positions), starts and wanted, as those of models/llm do. Texts longer than its caches run
/// as a whole.
std::unique_ptr<TextLogits> next_token_logits(program::Model& model, const TextInputs& inputs,
                                              int64_t context, const TextCodec& codec);

}  // namespace paddle::infer
