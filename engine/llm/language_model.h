#pragma once
// Language models in the files of other tools: Hugging Face folders (config.json and safetensors)
// and GGUF files, of a family (family.h).

#include <memory>
#include <string>
#include <vector>

#include "llm/runner.h"
#include "llm/speculation.h"
#include "program/model.h"

namespace paddle::llm {

/// Whether the path is a GGUF file, or a folder that Hugging Face's tools wrote.
bool is_language_model(const std::string& path);

struct ModelOptions {
  std::string family = {};  ///< a model file; empty: one that comes with the programs
  program::LoadOptions load = {};
  Activations activations = Activations::kInt16;
  RunnerOptions runner = {};
  WeightType weights = WeightType::kAsIs;
};

/// The model with weights that runners share. Null if its family has no function `step`.
std::shared_ptr<LoadedModel> load_shared(const std::string& path, const ModelOptions& options);

struct LanguageModel {
  /// From tokens [batch, sequence] to logits [batch, sequence, vocab_size].
  std::unique_ptr<program::Model> model;
  std::shared_ptr<Runner> runner;   ///< null if the family has no function `step`
  int64_t context = 0;              ///< tokens of a text
  std::vector<int64_t> end_tokens;  ///< of generation_config.json; the tokenizer knows others
  std::vector<tokenizers::TokenId> cached;  ///< of the runner's first sequence
  Speculation speculation;                  ///< of that sequence
  StepTimes step_times;
};

/// kModel for a type, a key or a weight that the family does not know.
LanguageModel open_language_model(const std::string& path, const ModelOptions& options);

}  // namespace paddle::llm
