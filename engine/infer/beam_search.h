#pragma once
// Sequences that a model writes token by token: it takes what is written so far and scores each
// next token.

#include <cstdint>
#include <functional>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::infer {

struct SearchOptions {
  size_t target = 0;  ///< number of the input [batch, length] with the tokens so far
  size_t scores = 0;  ///< number of the output [batch, length + 1, tokens] with logits
  int64_t end = 0;    ///< the token that ends a sequence
  int64_t beams = 1;
  int64_t max_length = 256;  ///< tokens of a sequence
};

struct SearchResult {
  std::vector<int64_t> tokens;  ///< without the end
  double score = 0;             ///< mean log-probability of its tokens and the end
};

/// A model as a function of all of its inputs.
using ModelRun = std::function<const std::vector<Array>&(const std::vector<Array>&)>;

/// The best sequence for each row of the inputs by beam search, with one beam the likeliest token
/// each time. Finished sequences compare by the mean log-probability of their tokens. Scores at a
/// place must not depend on tokens after it, since what follows is filled with zeros. kModel for
/// outputs of other shapes and for NaN.
std::vector<SearchResult> beam_search(const ModelRun& run, const std::vector<Array>& inputs,
                                      const SearchOptions& options);

}  // namespace paddle::infer
