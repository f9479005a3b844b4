#include "program/model.h"

#include "base/files.h"
#include "program/model_form.h"
#include "program/native_model.h"
#include "program/onnx_model.h"
#include "runtime/execute.h"

namespace paddle::program {

std::unique_ptr<Model> Model::clone() const {
  fail(ErrorCode::kUsage, name_, " cannot run in several streams");
}

std::vector<Array> Model::run_on_device(const std::vector<Array>& inputs) {
  std::vector<Array> on_host, results;
  for (const Array& input : inputs) on_host.push_back(input.on_host());
  for (const Array& result : run(on_host)) results.push_back(runtime::copied(result));
  return results;
}

std::unique_ptr<Model> Model::other_function(const std::string&) const { return nullptr; }

std::unique_ptr<Model> load_model(const std::string& path, const LoadOptions& options) {
  const ModelForm form = form_of_model(path);
  if (form == ModelForm::kGraph) return std::make_unique<OnnxModel>(path, options);
  if (is_directory(path)) {
    if (!options.overrides.empty())
      fail(ErrorCode::kUsage, "'", options.overrides[0], "': params are for model files; ", path,
           " is a trained model");
    if (!options.weights.empty())
      fail(ErrorCode::kUsage, "--weights is for model files; ", path, " has its own weights");
    return NativeModel::open_folder(find_model_folder(path), options);
  }
  return NativeModel::open_file(path, options);
}

}  // namespace paddle::program
