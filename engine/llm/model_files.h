#pragma once
// The files of a language model: a Hugging Face folder or a GGUF file, in the terms of `sources`.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "convert/source.h"
#include "formats/gguf/reader.h"
#include "text/jinja/value.h"

namespace paddle::llm {

struct ModelFiles {
  std::string kind;               ///< the key of `sources`: huggingface or gguf
  std::string config;             ///< the file of the keys, for errors
  std::string type;               ///< model_type, or GGUF's architecture
  jinja::Dict variables;          ///< keys and their values
  std::vector<std::string> keys;  ///< those that a family must know
  std::shared_ptr<const convert::Source> weights;
  std::shared_ptr<const formats::gguf::Reader> gguf;  ///< null for a folder
  int64_t context = 2048;
  std::vector<int64_t> end_tokens;
  std::map<std::string, std::string> spellings;  ///< of variables whose keys are spelled otherwise

  /// The key of a variable, as the file spells it.
  std::string spelled(const std::string& variable) const;
};

/// kModel for files that are damaged.
ModelFiles open_model_files(const std::string& path);

}  // namespace paddle::llm
