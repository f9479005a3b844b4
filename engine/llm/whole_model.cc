#include "llm/whole_model.h"

#include <optional>

#include "base/error.h"

namespace paddle::llm {

WholeModel whole_model(const ModelFiles& files, const Family& family, const std::string& path,
                       const program::LoadOptions& options) {
  WholeModel out{family.file, options, std::make_shared<Weights>(files, family.rules, path, true)};
  out.options.overrides = family.overrides;
  out.options.overrides.insert(out.options.overrides.end(), options.overrides.begin(),
                               options.overrides.end());
  out.options.preset = [weights = out.weights](const std::string& name, const Dims& shape, DType) {
    return std::optional(weights->read(name, shape));
  };
  return out;
}

WholeModel open_whole_model(const std::string& path, const std::string& family,
                            const program::LoadOptions& options) {
  if (!options.weights.empty())
    fail(ErrorCode::kUsage, "--weights is for model files; ", path, " has its own weights");
  const ModelFiles files = open_model_files(path);
  return whole_model(files, find_family(files, family), path, options);
}

}  // namespace paddle::llm
