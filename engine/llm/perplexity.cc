#include "llm/perplexity.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "llm/logits.h"

namespace paddle::llm {

namespace {

constexpr int64_t kDefaultWindow = 512;

/// -log of the softmax at `token`.
double loss_of(std::span<const float> logits, size_t token) {
  const double maximum = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - maximum);
  return std::log(sum) + maximum - logits[token];
}

}  // namespace

Perplexity perplexity(LanguageModel& model, std::span<const tokenizers::TokenId> tokens,
                      int64_t window, const std::function<bool()>& proceed) {
  if (window == 0) window = std::min(model.context, kDefaultWindow);
  if (window < 2 || window > model.context)
    fail(ErrorCode::kUsage, "the window is ", window,
         " tokens, expected 2 to the model's context (", model.context, ")");
  if (tokens.size() < 2)
    fail(ErrorCode::kData, "the text has fewer than 2 tokens; the first one is not predicted");
  double total = 0;
  Perplexity out;
  for (size_t begin = 0; begin + 1 < tokens.size() && proceed();
       begin += static_cast<size_t>(window - 1)) {
    const auto part =
        tokens.subspan(begin, std::min(tokens.size() - begin, static_cast<size_t>(window)));
    const Array logits = padded_logits(model, part);
    const auto vocab_size = static_cast<size_t>(logits.shape[2]);
    std::vector<double> losses(part.size() - 1);
    parallel_for(static_cast<int64_t>(losses.size()), 1, [&](int64_t first, int64_t last) {
      for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
        const auto token = static_cast<size_t>(part[i + 1]);
        if (token >= vocab_size)
          fail(ErrorCode::kModel, "the tokenizer has a token ", token, "; the model has ",
               vocab_size);
        losses[i] = loss_of({logits.data<float>() + i * vocab_size, vocab_size}, token);
      }
    });
    for (const double loss : losses) total += loss;
    out.tokens += static_cast<int64_t>(losses.size());
    out.value = std::exp(total / static_cast<double>(out.tokens));
    if (!std::isfinite(out.value))
      fail(ErrorCode::kModel, "the perplexity is not finite; the model's weights are not usable");
  }
  return out;
}

}  // namespace paddle::llm
