#pragma once
// One text as it is generated: from the logits of each step to its next token and what of the text
// is known by then.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decoding/sampling.h"
#include "decoding/stop_text.h"
#include "tensor/random.h"
#include "text/grammar/constraint.h"
#include "text/tokenizer.h"

namespace paddle::llm {

struct GenerateOptions {
  int64_t length = 200;  ///< tokens to add at most
  decoding::SamplingOptions sampling;
  uint64_t seed = 0;
  std::vector<std::string> stops;  ///< the text ends before the first of these
  /// Subtracted from the logits of generated tokens: once, and once for each time.
  double presence_penalty = 0, frequency_penalty = 0;
  std::map<tokenizers::TokenId, double> logit_bias;  ///< added
  /// Of how many of the most likely tokens log-probabilities are reported; none if negative.
  int64_t logprobs = -1;
  /// Drafts tokens by n-grams of the text and verifies several in one step; the generated
  /// text is the same.
  bool speculate = true;
  /// The generated text, what follows the prompt, is one of this grammar, unless `length` or the
  /// context ends it before.
  std::shared_ptr<grammar::Constraint> constraint;

  /// kUsage with the name of the option that is out of its range.
  void check() const;
};

struct TokenScore {
  tokenizers::TokenId token = 0;
  double logprob = 0;
};

/// A token of a text. Its score is by the model's logits, before sampling options.
struct GeneratedToken {
  TokenScore score;
  std::vector<TokenScore> top;  ///< the most likely ones first
};

/// The log-probability of a token, and those of the `top` most likely ones.
GeneratedToken score_token(std::span<const float> logits, tokenizers::TokenId token, int64_t top);

class Generation {
 public:
  enum class End : uint8_t { kNone, kStop, kLength };

  /// Continues `prompt`, up to `context` tokens in all. Ends at one of the tokens `ends` or the
  /// tokenizer's own.
  Generation(const tokenizers::Tokenizer& tokenizer, std::vector<tokenizers::TokenId> prompt,
             GenerateOptions options, std::vector<int64_t> ends, int64_t context);

  End end() const { return end_; }
  /// Chooses the next token; returns the text that is known now and was not before. kModel if the
  /// logits are NaN.
  std::string next(std::span<const float> logits);
  /// The token that `next` chose; null where the text ended instead.
  const GeneratedToken* last() const { return last_ ? &*last_ : nullptr; }
  /// Prompt and generated tokens.
  const std::vector<tokenizers::TokenId>& tokens() const { return tokens_; }
  int64_t generated() const { return static_cast<int64_t>(tokens_.size() - prompt_); }

 private:
  void adjust(std::vector<double>& logits);
  void constrain(std::vector<double>& logits);
  std::string stop(End end);

  const tokenizers::Tokenizer& tokenizer_;
  std::vector<tokenizers::TokenId> tokens_;
  size_t prompt_;
  GenerateOptions options_;
  std::vector<int64_t> ends_;
  int64_t context_;
  decoding::StopFilter filter_;
  tokenizers::StreamDecoder stream_;
  bool begins_text_ = true;  ///< the next token is the first one of the whole text
  Random random_;
  grammar::StateId state_ = grammar::kNoState;  ///< of the constraint
  std::optional<GeneratedToken> last_;
  End end_ = End::kNone;
};

}  // namespace paddle::llm
