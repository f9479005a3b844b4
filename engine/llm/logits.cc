#include "llm/logits.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace paddle::llm {

Array padded_logits(LanguageModel& model, std::span<const tokenizers::TokenId> tokens) {
  if (model.runner) {
    model.cached.clear();
    model.runner->truncate(0, 0);
    const auto count = static_cast<int64_t>(tokens.size());
    Array logits = Array::empty(DType::kF32, {1, count, model.runner->vocab_size()});
    model.runner->append_all(0, tokens, logits.data<float>());
    return logits;
  }
  const int64_t bin = std::clamp<int64_t>(static_cast<int64_t>(std::bit_ceil(tokens.size())),
                                          kMinBin, std::max(model.context, kMinBin));
  Array input = Array::zeros(DType::kI64, {1, bin});
  std::copy(tokens.begin(), tokens.end(), input.data<int64_t>());
  const Array logits = model.model->run({input})[0];
  if (logits.ndim() != 3 || logits.shape[1] != bin)
    fail(ErrorCode::kModel, "the model's output is ", str(logits.shape),
         ", expected logits [batch, sequence, vocabulary]");
  return logits.cast(DType::kF32).contiguous();
}

}  // namespace paddle::llm
