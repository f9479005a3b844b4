#pragma once
// The function of a language model's family that computes whole texts, as a model file with values
// for its parameters: for programs that take model files.

#include <memory>
#include <string>

#include "llm/family.h"
#include "llm/weights.h"
#include "program/model.h"

namespace paddle::llm {

struct WholeModel {
  std::string file;              ///< of the family
  program::LoadOptions options;  ///< with the params and the values, which are float32
  std::shared_ptr<Weights> weights;
};

WholeModel whole_model(const ModelFiles& files, const Family& family, const std::string& path,
                       const program::LoadOptions& options);
/// The same for a Hugging Face folder or a GGUF file; kModel for a type or a key that the family
/// does not know.
WholeModel open_whole_model(const std::string& path, const std::string& family,
                            const program::LoadOptions& options);

}  // namespace paddle::llm
