#pragma once
// Language models in the files of other tools: Hugging Face folders (config.json and safetensors)
// and GGUF files. A family of models is a model file whose section `sources` says how keys of
// config.json or of GGUF's metadata become its params, and which rules rename the weights.

#include <memory>
#include <string>
#include <vector>

#include "program/model.h"

namespace paddle::llm {

/// Whether the path is a GGUF file, or a folder that Hugging Face's tools wrote.
bool is_language_model(const std::string& path);

struct LanguageModel {
  std::unique_ptr<program::Model> model;
  int64_t context = 0;              ///< tokens that it was trained for
  std::vector<int64_t> end_tokens;  ///< of generation_config.json; the tokenizer knows others
};

/// Opens such a model with float32 weights. `family` is a model file; where it is empty, those that
/// come with the programs are searched for one that names the model's type. kModel for a type, a
/// key or a weight that the family does not know.
LanguageModel open_language_model(const std::string& path, const std::string& family,
                                  program::LoadOptions options);

}  // namespace paddle::llm
