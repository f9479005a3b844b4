#pragma once
// The modules around an encoder that make one vector of the hidden values of a text's tokens, under
// the names of sentence-transformers, whose folders list them in files next to the model.

#include <cstdint>
#include <string>
#include <vector>

namespace paddle::llm {

/// Several are joined, in this order.
enum class Pooling : uint8_t { kFirst, kMax, kMean, kMeanByRoot, kWeightedMean, kLast };

/// A layer on vectors: activation(weight · x + bias).
struct DenseLayer {
  enum class Activation : uint8_t { kNone, kTanh, kRelu, kGelu, kSigmoid };
  int64_t features = 0, outputs = 0;
  std::vector<float> weight;  ///< [outputs, features]
  std::vector<float> bias;    ///< empty: none
  Activation activation = Activation::kNone;
};

struct SentenceModules {
  std::vector<Pooling> poolings = {Pooling::kMean};
  std::vector<DenseLayer> layers;
  bool normalize = true;                    ///< the vector has the length 1
  int64_t most_tokens = 0;                  ///< of a text; 0: those of the model
  bool lower_case = false, strips = false;  ///< texts, before they are tokens
  std::string prompt;                       ///< in front of each text

  int64_t width(int64_t hidden_width) const;
  /// The vector of the hidden values of the first `count` tokens, [count, width].
  std::vector<float> vector_of(const float* hidden, int64_t count, int64_t hidden_width) const;
};

/// The modules of a folder of sentence-transformers, or the defaults. kModel, with the file and the
/// key, for what the folder asks for and is not supported.
SentenceModules read_sentence_modules(const std::string& folder, int64_t hidden_width);

/// The pooling that a GGUF file names; the mean if it names none.
SentenceModules read_gguf_pooling(const std::string& path);

}  // namespace paddle::llm
