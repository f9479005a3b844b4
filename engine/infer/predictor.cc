#include "infer/predictor.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "formats/safetensors.h"
#include "model/evaluator.h"
#include "model/overrides.h"
#include "runtime/compile.h"
#include "train/config.h"
#include "train/predict.h"

namespace paddle::infer {
namespace {

namespace fs = std::filesystem;

/// A run folder stands for its model; a run's checkpoint folder for its newest checkpoint.
std::string model_folder(const std::string& path) {
  if (file_exists((fs::path(path) / "module.txt").string())) return path;
  for (const char* inside : {"model", "checkpoints/latest", "latest"}) {
    const fs::path candidate = fs::path(path) / inside;
    if (file_exists((candidate / "module.txt").string())) return candidate.string();
  }
  fail(ErrorCode::kUsage, path, ": is no model folder (there is no module.txt in it)");
}

Meaning read_meaning(const fs::path& folder) {
  Meaning m;
  if (file_exists((folder / "config.yaml").string())) {
    model::Diagnostics diagnostics;
    m.config = model::read_document((folder / "config.yaml").string(), diagnostics);
    diagnostics.raise();
  }
  const std::string file = (folder / "model.json").string();
  if (file_exists((folder / "vocabulary.json").string()))
    m.vocabulary = data::Vocabulary::read((folder / "vocabulary.json").string());
  if (!file_exists(file)) return m;
  const auto json =
      nlohmann::json::parse(read_file(file, 1 << 24, ErrorCode::kModel), nullptr, false);
  try {
    const std::string label = json.value("label", "");
    for (const auto& field : json.at("fields")) {
      if (!field.contains("class_count")) continue;
      if (!label.empty() && field.at("name") != label) continue;
      m.class_count = field.at("class_count").get<int64_t>();
      m.label_field = field.at("name").get<std::string>();
      if (field.contains("classes"))
        m.classes = field.at("classes").get<std::vector<std::string>>();
    }
    if (json.value("vocabulary_level", "") == "bytes") m.vocabulary = data::Vocabulary::bytes();
  } catch (const nlohmann::json::exception&) {
    fail(ErrorCode::kModel, file, ": is damaged");
  }
  return m;
}

}  // namespace

std::unique_ptr<Predictor> Predictor::load(const std::string& path, const LoadOptions& options) {
  auto p = std::make_unique<Predictor>();
  p->store_.seed = options.seed;
  if (is_directory(path)) {
    if (!options.overrides.empty())
      fail(ErrorCode::kUsage, "'", options.overrides[0], "': params belong to model files; ", path,
           " is a trained model");
    if (!options.weights.empty())
      fail(ErrorCode::kUsage, "--weights belongs to model files; ", path, " has its own weights");
    if (options.function != "model")
      fail(ErrorCode::kUsage, "--function belongs to model files; ", path,
           " is a trained model with one function");
    p->open_folder(model_folder(path));
  } else {
    p->open_program(path, options);
  }
  p->prepare();
  return p;
}

void Predictor::open_folder(const std::string& path) {
  const fs::path folder(path);
  const std::string file = (folder / "module.txt").string();
  const ir::Module module = ir::parse(read_file(file, uint64_t{1} << 30, ErrorCode::kModel), file);
  ir::verify(module);
  name_ = module.name;
  const fs::path inference = folder / "inference";  // of a checkpoint
  meaning_ = read_meaning(is_directory(inference.string()) ? inference : folder);
  const formats::SafetensorsReader weights((folder / "model.safetensors").string());
  std::shared_ptr<ir::Function> found;
  for (const auto& f : module.functions)
    if (f->name == "predict") found = f;
  if (!found) {
    // A checkpoint holds the functions of training; its config says how to predict.
    if (!meaning_.config) fail(ErrorCode::kModel, file, ": has no function 'predict'");
    const train::RunConfig config = train::read_config((folder / "config.yaml").string(), {});
    found = train::trace_prediction(*config.program, config.program->model, store_, config.wide);
  }
  function_ = found;
  // Weights are used where they lie in the file.
  for (size_t i = 0; i < function_->inputs.size(); ++i) {
    const ir::Port& port = function_->inputs[i];
    if (port.kind != ir::PortKind::kParameter && port.kind != ir::PortKind::kState) continue;
    const TensorType& type = function_->body.arguments[i]->type;
    const Array value = weights.read(port.name);
    if (value.dtype != type.dtype || value.shape != concrete(type.shape))
      fail(ErrorCode::kModel, weights.path(), ": '", port.name, "' is ", text(value.dtype),
           str(value.shape), ", the module needs ", type);
    if (port.kind == ir::PortKind::kParameter)
      store_.parameters[port.name].value = value;
    else
      store_.states[port.name] = value;
  }
}

void Predictor::open_program(const std::string& path, const LoadOptions& options) {
  model::ProgramOptions program_options;
  const auto [file, variant] = model::split_variant(path);
  if (!file_exists(file)) fail(ErrorCode::kUsage, file, ": there is no such file or folder");
  program_options.variant = variant;
  for (const std::string& o : options.overrides)
    program_options.overrides.push_back(model::parse_override(o));
  const auto program = model::read_program(file, program_options);
  const model::EntryPoint* entry = program->find_entry(options.function);
  if (!entry) {
    std::vector<std::string> names = {"model"};
    for (const model::EntryPoint& f : program->functions) names.push_back(f.name);
    fail(ErrorCode::kUsage, file, ": has no function '", options.function, "'",
         did_you_mean(options.function, names), "; it has ", join(names, ", "));
  }
  name_ = program->name;
  function_ = train::trace_prediction(*program, *entry, store_, false);
  if (options.weights.empty()) return;
  // Weights that belong to another entry of the same file are no surplus.
  train::Store whole = store_;
  for (const model::EntryPoint& f : program->functions)
    if (&f != entry) train::trace_prediction(*program, f, whole, false);
  if (entry != &program->model) train::trace_prediction(*program, program->model, whole, false);
  train::LoadReport report = train::load_weights(options.weights, store_);
  std::erase_if(report.unused, [&](const std::string& n) {
    return whole.parameters.count(n) || whole.states.count(n);
  });
  train::check_report(report, options.weights, options.allow_missing, options.allow_unused);
  report_ = report;
}

void Predictor::prepare() {
  for (const passes::Pass& pass : passes::standard_passes(runtime::pass_options()))
    pass.run(*function_);
  executable_ = std::make_unique<runtime::Executable>(function_);
  arrays_.resize(function_->inputs.size());
  for (size_t i = 0; i < function_->inputs.size(); ++i) {
    const ir::Port& port = function_->inputs[i];
    user_input_.push_back(-1);
    switch (port.kind) {
      case ir::PortKind::kValue:
        user_input_.back() = static_cast<int>(inputs_.size());
        inputs_.push_back({port.name, function_->body.arguments[i]->type});
        break;
      case ir::PortKind::kParameter:
        arrays_[i] = store_.parameters.at(port.name).value.contiguous();
        break;
      case ir::PortKind::kState:
        arrays_[i] = store_.states.at(port.name).contiguous();
        break;
      case ir::PortKind::kRandom:
        arrays_[i] = Array::from<uint64_t>({store_.seed, 0}, {2});
        break;
    }
  }
  for (size_t i = 0; i < function_->outputs.size(); ++i)
    if (function_->outputs[i].kind == ir::PortKind::kValue) {
      user_output_.push_back(i);
      outputs_.push_back(function_->outputs[i].name);
    }
}

int64_t Predictor::parameter_count() const { return store_.parameter_count(); }

std::vector<Array> Predictor::run(const std::vector<Array>& inputs) {
  for (size_t i = 0; i < arrays_.size(); ++i)
    if (user_input_[i] >= 0) arrays_[i] = inputs[static_cast<size_t>(user_input_[i])].contiguous();
  const std::vector<Array>& results = executable_->run(arrays_);
  std::vector<Array> out;
  for (const size_t i : user_output_) out.push_back(results[i]);
  return out;
}

double Predictor::flops(const std::vector<Array>& inputs) {
  std::vector<Layout> layouts;
  for (size_t i = 0; i < arrays_.size(); ++i)
    layouts.push_back(Layout::of(user_input_[i] >= 0
                                     ? inputs[static_cast<size_t>(user_input_[i])].contiguous()
                                     : arrays_[i]));
  return executable_->plan(layouts).flops();
}

void Predictor::reset() {
  for (size_t i = 0; i < function_->inputs.size(); ++i)
    if (function_->inputs[i].kind == ir::PortKind::kState) {
      Array own = Array::empty(arrays_[i].dtype, arrays_[i].shape);
      const Array begin = store_.states.at(function_->inputs[i].name).contiguous();
      std::memcpy(own.raw(), begin.raw(),
                  static_cast<size_t>(storage_bytes(own.dtype, own.size())));
      arrays_[i] = own;
    }
}

}  // namespace paddle::infer
