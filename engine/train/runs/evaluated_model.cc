#include "train/runs/evaluated_model.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "lang/syntax/program.h"
#include "program/saved_model.h"

namespace paddle::train {
namespace {

namespace fs = std::filesystem;

/// The folder with the config of the run and what it fitted: of a checkpoint, `inference`.
std::string metadata_folder(const std::string& model) {
  const std::string inference = (fs::path(model) / "inference").string();
  return is_directory(inference) ? inference : model;
}

/// Fitted values in `folder`, where there are any.
void use_fitted(const fs::path& folder, TrainOptions& options) {
  const std::string fitted = (folder / "fitted.json").string();
  if (file_exists(fitted)) options.fitted = fitted;
}

/// Fitted values of the run that a config is of.
void use_fitted_of_config(const std::string& config_file, TrainOptions& options) {
  const fs::path folder = fs::path(config_file).parent_path();
  use_fitted(folder / "model", options);
  use_fitted(folder, options);
}

/// The checkpoint with all models of a run, for the run or for its folder `best` or `model`, which
/// hold one of them: that of the best step, or the newest.
std::string checkpoint_of_all(const std::string& given) {
  std::error_code ignored;
  const fs::path place = fs::weakly_canonical(given, ignored);
  const bool is_run = is_directory((place / "checkpoints").string());
  const fs::path checkpoints = (is_run ? place : place.parent_path()) / "checkpoints";
  const fs::path latest = checkpoints / "latest";
  if (!is_directory(latest.string()))
    fail(ErrorCode::kUsage, given,
         ": holds one of several models, and its run has no checkpoint of all of them");
  if (is_run || place.filename() != "best") return latest.string();
  const auto state = nlohmann::json::parse(
      read_file((latest / "state.json").string(), 1 << 24, ErrorCode::kModel), nullptr, false);
  const auto step = state.is_object() ? state.find("best_step") : state.end();
  if (!state.is_object() || step == state.end() || !step->is_number_integer())
    fail(ErrorCode::kModel, (latest / "state.json").string(), ": is damaged");
  const fs::path best = checkpoints / std::to_string(step->get<int64_t>());
  if (!is_directory(best.string()))
    fail(ErrorCode::kUsage, given, ": holds one of several models, and the checkpoint of its step ",
         step->get<int64_t>(), " is gone");
  return best.string();
}

}  // namespace

std::string config_of_model(const std::string& folder) {
  const std::string file =
      (fs::path(metadata_folder(program::find_model_folder(folder))) / "config.yaml").string();
  return file_exists(file) ? file : "";
}

EvaluatedModel open_evaluated_folder(const std::string& given,
                                     const std::vector<std::string>& overrides) {
  EvaluatedModel out;
  out.model = program::find_model_folder(given);
  const std::string metadata = metadata_folder(out.model);
  const std::string config_file = (fs::path(metadata) / "config.yaml").string();
  if (!file_exists(config_file))
    fail(ErrorCode::kModel, out.model,
         ": has no config.yaml, so its loss and metrics are not known");
  out.config = read_config(config_file, overrides);
  const auto is_checkpoint = [&] {
    return file_exists((fs::path(out.model) / "state.json").string());
  };
  // The loss of several models needs all of them, which checkpoints hold.
  if (!out.config.models[0].name.empty() && !is_checkpoint()) out.model = checkpoint_of_all(given);
  // A saved model holds the sums of matrices and adapters; a checkpoint has both.
  if (!is_checkpoint()) {
    out.config.adapters.reset();
    for (OptimizerConfig& optimizer : out.config.optimizers)
      std::erase_if(optimizer.options.groups, [](const optim::ParameterGroup& group) {
        return group.key == "lora" || group.key == "lora.also";
      });
  }
  out.options.initial_weights = (fs::path(out.model) / "model.safetensors").string();
  use_fitted(metadata, out.options);
  return out;
}

EvaluatedModel open_evaluated_file(const std::string& file, const std::string& config_file,
                                   std::vector<std::string> overrides, const std::string& weights) {
  EvaluatedModel out;
  out.model = file;
  const std::string source = lang::split_variant(file).first;
  const bool is_program = source.ends_with(".yaml") || source.ends_with(".yml");
  const bool is_weights = !is_directory(file) && file.ends_with(".safetensors");
  if (!is_program && !is_weights && !file.ends_with(".onnx"))
    fail(ErrorCode::kUsage, file,
         ": expected a run, a model folder, a .safetensors, .onnx, .gguf or model file, or a "
         "Hugging Face folder");
  if (!is_program && !weights.empty())
    fail(ErrorCode::kUsage, "--weights is for model files; ", file, " has its own weights");
  if (!is_weights) overrides.insert(overrides.begin(), "model=" + fs::absolute(file).string());
  out.config = read_config(config_file, overrides);
  if (is_program && weights.empty() && out.config.init.file.empty())
    fail(ErrorCode::kUsage, file, ": has no weights; give --weights FILE.safetensors");
  if (!is_program || !weights.empty()) out.config.init = {};  // the weights are those of the file
  if (is_weights) out.options.initial_weights = file;
  if (is_program) out.options.initial_weights = weights;
  use_fitted_of_config(config_file, out.options);
  return out;
}

EvaluatedModel open_evaluated_config(const std::string& config_file,
                                     const std::vector<std::string>& overrides) {
  EvaluatedModel out;
  out.config = read_config(config_file, overrides);
  use_fitted_of_config(config_file, out.options);
  return out;
}

namespace {

/// Whether these words name data and not a config with a section of it.
bool is_data(const std::string& words) {
  if (is_directory(words)) return true;
  const std::string ending = fs::path(words).extension().string();
  if (!file_exists(words) || ending == ".yaml" || ending == ".yml") return false;
  // Of JSON files, configs have a map with `data`.
  if (ending != ".json") return true;
  const auto json = nlohmann::json::parse(read_file(words), nullptr, false);
  return !json.is_object() || !json.contains("data");
}

}  // namespace

std::string choose_evaluation_data(RunConfig& config, const std::string& words,
                                   const std::string& option) {
  data::DataConfig& data = config.data;
  const std::vector<std::string> parts = {"train", "valid", "test"};
  const auto [file, part] = data::parse_data_name(words, parts);
  data.warns_of_overlap = false;
  if (!file.empty() && is_data(words)) {
    // The fields are those of the run, with what they have learned from its training rows.
    data.valid = data::of_file(data.valid ? *data.valid : data.train, words);
    data.test.reset();
    return words;
  }
  std::optional<data::DataConfig> other;
  if (!file.empty()) other = data::read_config_data(file);
  const data::DataConfig& from = other ? *other : data;
  std::optional<data::DatasetOptions> wanted;
  if (part == "train")
    wanted = from.train;
  else if (part == "valid")
    wanted = from.valid;
  else if (part == "test")
    wanted = from.test;
  else
    fail(ErrorCode::kUsage, option, ": expected train, valid or test, found '", part, "'",
         did_you_mean(part, parts));
  if (!wanted) fail(ErrorCode::kUsage, option, ": the config has no data.", part);
  data.valid = wanted;
  data.test.reset();
  return part;
}

void settle_for_evaluation(RunConfig& config, bool has_ranks) {
  config.best = {};
  config.early_stop.reset();
  if (!has_ranks) config.parallel = {};  // however the run was trained
  config.data.check_seconds = 0;         // all samples of the part are read anyway, and no others
}

}  // namespace paddle::train
