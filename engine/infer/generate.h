#pragma once
// Text generation: token by token from a language model, by temperature, top-k and top-p. The
// tokens drawn are a function of the prompt, the options and the seed alone.

#include <functional>
#include <string>

#include "infer/predictor.h"

namespace paddle::infer {

struct GenerateOptions {
  std::string prompt;
  int64_t length = 200;    ///< tokens to add
  double temperature = 1;  ///< 0: always the most likely token
  int64_t top_k = 0;       ///< 0: no bound
  double top_p = 1;
  uint64_t seed = 0;
  int64_t context = 0;  ///< tokens the model may look back on; 0: from the run's config
};

/// Calls `emit` with each piece of text as it comes; stops early when it returns false.
void generate(Predictor& model, const GenerateOptions& options,
              const std::function<bool(const std::string&)>& emit);

/// Draws a token from logits; `random` lies in [0, 1).
int64_t sample_token(const std::vector<double>& logits, const GenerateOptions& options,
                     double random);

}  // namespace paddle::infer
