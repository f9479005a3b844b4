#include "llm/generate.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "tensor/random.h"

namespace paddle::llm {

namespace {

constexpr int64_t kSmallestBin = 16;

/// Logits of the token after these.
std::vector<double> next_logits(program::Model& model,
                                const std::vector<tokenizers::TokenId>& tokens, int64_t context) {
  const auto length = static_cast<int64_t>(tokens.size());
  const int64_t bin =
      std::clamp<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length))),
                          kSmallestBin, std::max(context, kSmallestBin));
  Array input = Array::zeros(DType::kI64, {1, bin});
  std::copy(tokens.begin(), tokens.end(), input.data<int64_t>());
  const Array logits = model.run({input})[0];
  if (logits.ndim() != 3 || logits.shape[1] != bin)
    fail(ErrorCode::kModel, "the model's output is ", str(logits.shape),
         ", expected logits [batch, sequence, vocabulary]");
  const int64_t words = logits.shape[2];
  std::vector<double> out(static_cast<size_t>(words));
  for (int64_t w = 0; w < words; ++w) {
    out[static_cast<size_t>(w)] = logits.number((length - 1) * words + w);
    if (std::isnan(out[static_cast<size_t>(w)]))
      fail(ErrorCode::kModel, "the model's logits are NaN; its weights are not usable");
  }
  return out;
}

}  // namespace

std::string generate(LanguageModel& model, const tokenizers::Tokenizer& tokenizer,
                     std::vector<tokenizers::TokenId> tokens, const GenerateOptions& options,
                     const std::function<bool(const std::string&)>& emit) {
  const auto& sampling = options.sampling;
  if (options.length < 0 || !(sampling.temperature >= 0) || sampling.top_k < 0 ||
      !(sampling.top_p > 0 && sampling.top_p <= 1))
    fail(ErrorCode::kUsage,
         "length, temperature and top-k must be at least 0, top-p above 0 and at most 1");
  if (tokens.empty() && tokenizer.beginning) tokens.push_back(*tokenizer.beginning);
  if (tokens.empty()) fail(ErrorCode::kUsage, "an empty prompt, and the model has no first token");
  if (static_cast<int64_t>(tokens.size()) > model.context)
    fail(ErrorCode::kUsage, "the prompt has ", tokens.size(), " tokens; the model's context is ",
         model.context);
  tokenizers::StreamDecoder stream(tokenizer);
  std::string text;
  const auto show = [&](const std::string& piece) {
    text += piece;
    return piece.empty() || emit(piece);
  };
  const Random random(options.seed, stream_of("generate"));
  for (int64_t i = 0; i < options.length && static_cast<int64_t>(tokens.size()) < model.context;
       ++i) {
    const auto logits = next_logits(*model.model, tokens, model.context);
    const auto token = static_cast<tokenizers::TokenId>(
        decoding::sample_token(logits, sampling, random.uniform(static_cast<uint64_t>(i))));
    if (std::find(model.end_tokens.begin(), model.end_tokens.end(), token) !=
            model.end_tokens.end() ||
        token == tokenizer.end)
      break;
    tokens.push_back(token);
    if (!tokenizer.token(token)) continue;  // vocabularies of weights are padded
    if (!show(stream.add(token))) return text;
  }
  show(stream.finish());
  return text;
}

}  // namespace paddle::llm
