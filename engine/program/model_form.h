#pragma once
// The form of a model that a path names. Tools ask once and pass the answer on.

#include <string>

namespace paddle::program {

enum class ModelForm {
  kFile,     ///< a model file in the model language, or a path that does not exist
  kFolder,   ///< a saved model, a run or a checkpoint
  kGraph,    ///< an ONNX file, or a program of PaddlePaddle: a file or a folder
  kLanguage  ///< a language model: a GGUF file or a Hugging Face folder
};

ModelForm form_of_model(const std::string& path);

}  // namespace paddle::program
