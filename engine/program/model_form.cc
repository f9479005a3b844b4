#include "program/model_form.h"

#include "base/files.h"
#include "formats/gguf/reader.h"
#include "paddle_program/register.h"

namespace paddle::program {

ModelForm form_of_model(const std::string& path) {
  const bool is_folder = is_directory(path);
  const bool is_language =
      is_folder ? file_exists(path + "/config.json") && !file_exists(path + "/module.txt")
                : formats::gguf::is_gguf(path);
  if (is_language) return ModelForm::kLanguage;
  if (paddle_program::is_graph_file(path)) return ModelForm::kGraph;
  return is_folder ? ModelForm::kFolder : ModelForm::kFile;
}

}  // namespace paddle::program
