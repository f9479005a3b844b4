#pragma once
// Text generation from a language model. The generated text depends only on the prompt, the options
// and the seed.

#include <functional>
#include <string>
#include <vector>

#include "decoding/sampling.h"
#include "program/model.h"

namespace paddle::infer {

struct GenerateOptions {
  std::string prompt;
  int64_t length = 200;  ///< tokens to add
  decoding::SamplingOptions sampling;
  uint64_t seed = 0;
  int64_t context = 0;             ///< tokens the model sees at most; 0: from the run's config
  std::vector<std::string> stops;  ///< the text ends before the first of these
};

/// Whether the model can generate text, with these options and from this prompt: kUsage, or kData
/// for characters that are not in its vocabulary.
void check_options(const program::Model& model, const GenerateOptions& options);

/// Calls `emit` with the text of each generated token; stops when it returns false. Checks as
/// `check_options`.
void generate(program::Model& model, const GenerateOptions& options,
              const std::function<bool(const std::string&)>& emit);

}  // namespace paddle::infer
