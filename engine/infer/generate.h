#pragma once
// Text generation from a language model. The generated text depends only on the prompt, the options
// and the seed.

#include <functional>
#include <string>

#include "decoding/sampling.h"
#include "program/model.h"

namespace paddle::infer {

struct GenerateOptions {
  std::string prompt;
  int64_t length = 200;  ///< tokens to add
  decoding::SamplingOptions sampling;
  uint64_t seed = 0;
  int64_t context = 0;  ///< tokens the model sees at most; 0: from the run's config
};

/// Calls `emit` with the text of each generated token; stops when it returns false.
void generate(program::Model& model, const GenerateOptions& options,
              const std::function<bool(const std::string&)>& emit);

}  // namespace paddle::infer
