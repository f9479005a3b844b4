// paddle-show MODEL: layers, output shapes, parameters and FLOPs of a model file or of a config's
// model; what an ONNX file, a Hugging Face folder or a GGUF file holds.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "common_model_files.h"
#include "common_options.h"
#include "config/overrides.h"
#include "infer_predict.h"
#include "lang/eval/summary.h"
#include "llm/language_model.h"
#include "onnx/graph/summary.h"
#include "paddle_program/register.h"
#include "program/model.h"
#include "program/model_form.h"
#include "sections/sections.h"
#include "show_formats.h"
#include "show_graph.h"
#include "train/config/run_config.h"
#include "train/runs/evaluated_model.h"

namespace {

using namespace paddle;

std::map<std::string, int64_t> read_dims(const std::vector<std::string>& arguments) {
  std::map<std::string, int64_t> dims;
  for (const std::string& a : arguments) {
    const size_t equals = a.find('=');
    int64_t value = 0;
    try {
      value = std::stoll(equals == std::string::npos ? "" : a.substr(equals + 1));
    } catch (const std::exception&) {
      fail(ErrorCode::kUsage, "--dim: expected name=value, found '", a, "'");
    }
    if (value < 1) fail(ErrorCode::kUsage, "--dim: '", a, "' is not a size");
    dims[a.substr(0, equals)] = value;
  }
  return dims;
}

int run_show(int argc, char** argv) {
  cli::App app{"Prints the layers of a model with output shapes, parameters and FLOPs."};
  std::vector<std::string> arguments, dims;
  std::string function = "model", family;
  int depth = -1;  // not given
  bool training = false, json = false;
  cli::GraphView graph;
  app.add_option("MODEL", arguments,
                 "a run folder, its model/ or a checkpoint, a model file[:variant], a config, an "
                 "ONNX file, a Hugging Face folder or a GGUF file; then params.x=value");
  app.add_option("--function", function, "entry of the model file");
  app.add_option("--dim", dims, "name=value: a symbolic dim, for FLOPs (default 1)");
  app.add_option("--depth", depth, "levels of blocks to show (default 1; --graph: all)");
  app.add_option("--family", family, "the model file of a Hugging Face folder or GGUF file");
  app.add_flag("--training", training, "as it is in training");
  app.add_option("--graph", graph.output, "draw the graph of the model to this SVG file instead");
  cli::add_overwrite(app, graph.overwrite);
  app.add_flag("--json", json, "print a JSON object on the last line, with all layers");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  const auto overrides = cli::take_overrides(arguments);
  if (arguments.size() != 1)
    fail(ErrorCode::kUsage, "one model is expected (see paddle-show --help)");
  if (!graph.output.empty()) {
    if (training) fail(ErrorCode::kUsage, "--training cannot be combined with --graph");
    graph.model = arguments[0];
    graph.function = function;
    graph.family = family;
    graph.overrides = overrides;
    graph.dims = read_dims(dims);
    graph.depth = depth;
    graph.json = json;
    cli::draw_model(graph);
    return 0;
  }
  const program::ModelForm form = program::form_of_model(arguments[0]);
  if (form == program::ModelForm::kLanguage) {
    if (function != "model")
      fail(ErrorCode::kUsage, "--function is for model files, not for ", arguments[0]);
    cli::show_language_model(
        arguments[0], {overrides, family, read_dims(dims), depth < 0 ? 1 : depth, training, json});
    return 0;
  }
  if (!family.empty())
    fail(ErrorCode::kUsage, "--family is for Hugging Face folders and GGUF files");
  std::string config;
  if (form == program::ModelForm::kFolder) {
    config = train::config_of_model(arguments[0]);
    if (config.empty()) {  // a saved model without its run: a quantized or a merged one
      if (!overrides.empty())
        fail(ErrorCode::kUsage, "'", overrides[0], "': params are for model files; ", arguments[0],
             " is a trained model");
      program::LoadOptions load;
      load.function = function;
      cli::print_model(*program::load_model(arguments[0], load), json);
      return 0;
    }
  }
  const auto [file, variant] = lang::split_variant(config.empty() ? arguments[0] : config);
  if (!file_exists(file)) fail(ErrorCode::kUsage, file, ": no such file");
  if (paddle_program::is_graph_file(file)) {
    cli::print(json ? onnx::summarize_json(file, read_dims(dims)) + "\n"
                    : onnx::summarize(file, read_dims(dims)));
    return 0;
  }
  std::vector<program::NamedModel> models;
  if (cli::is_config(file)) {
    models = train::read_config(file, cli::with_model_files(file, overrides)).models;
  } else {
    lang::ProgramOptions options;
    options.variant = variant;
    for (const std::string& o : overrides) options.overrides.push_back(config::parse_override(o));
    models = {{"", lang::read_program(file, options)}};
  }
  nlohmann::ordered_json objects = nlohmann::ordered_json::array();
  for (const auto& model : models) {
    const lang::EntryPoint* entry = model.program->find_entry(function);
    if (!entry) fail(ErrorCode::kUsage, file, ": has no function '", function, "'");
    if (!model.name.empty()) cli::print(model.name + ":\n");
    const auto summary = lang::summarize(*model.program, *entry, read_dims(dims), training);
    cli::print(lang::text(summary, depth < 0 ? 1 : depth));
    if (json) objects.push_back(cli::to_json(summary));
  }
  if (json && objects.size() == 1) cli::print_json(objects[0]);
  if (json && objects.size() > 1) cli::print_json({{"models", objects}});
  return 0;
}

}  // namespace

namespace paddle::cli {

int show_command(int argc, char** argv) {
  return run_tool([&] {
    register_sections();
    return run_show(argc, argv);
  });
}

}  // namespace paddle::cli
