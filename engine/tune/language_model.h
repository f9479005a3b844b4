#pragma once
// A language model as the subject of tuning: threads, the chunks in which prompts are read, texts
// at a time, and how keys and values are stored. Its settings are options of paddle-infer.

#include "llm/language_model.h"
#include "tune/target.h"

namespace paddle::tune {

struct LanguageModelOptions {
  std::string model;
  llm::ModelOptions load;
  int64_t prefill = 256, decode = 32;  ///< tokens of a measured text
  double loss_tolerance = 0.02;        ///< relative, of the mean loss with other keys and values
};

/// kModel if the model does not read, kUsage if its family has no function `step`.
std::unique_ptr<TuningTarget> language_model_target(LanguageModelOptions options);

}  // namespace paddle::tune
