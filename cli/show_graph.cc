#include "show_graph.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "common.h"
#include "common_model_files.h"
#include "config/overrides.h"
#include "inspect/graph_picture.h"
#include "lang/syntax/program.h"
#include "llm/family.h"
#include "llm/language_model.h"
#include "paddle_program/register.h"
#include "program/traced_model.h"
#include "show_formats.h"
#include "train/config/run_config.h"

namespace paddle::cli {
namespace {

constexpr auto kValues = program::WeightValues::kDeferred;

/// The first model of a config; further ones are drawn by the name of their own file.
program::TracedModel trace_config(const GraphView& view) {
  const auto models =
      train::read_config(view.model, with_model_files(view.model, view.overrides)).models;
  if (models.size() != 1)
    fail(ErrorCode::kUsage, view.model, ": has ", models.size(),
         " models; --graph draws the file of one, or a run folder of it");
  const lang::EntryPoint* const entry = models[0].program->find_entry(view.function);
  if (!entry) fail(ErrorCode::kUsage, view.model, ": has no function '", view.function, "'");
  return program::trace_entry(*models[0].program, *entry, view.dims, kValues);
}

program::TracedModel trace_language_model(const GraphView& view) {
  const llm::Family family = llm::find_family(llm::open_model_files(view.model), view.family);
  program::LoadOptions options;
  options.function = view.function;
  for (const auto* list : {&family.overrides, &view.overrides})
    options.overrides.insert(options.overrides.end(), list->begin(), list->end());
  return program::trace_model(family.file, options, view.dims, kValues);
}

program::TracedModel trace(const GraphView& view) {
  if (llm::is_language_model(view.model)) return trace_language_model(view);
  if (!view.family.empty())
    fail(ErrorCode::kUsage, "--family is for Hugging Face folders and GGUF files");
  const bool is_graph = paddle_program::is_graph_file(view.model);
  const std::string file = lang::split_variant(view.model).first;
  if (!is_graph && !is_directory(view.model) && file_exists(file) && is_config(file))
    return trace_config(view);
  if (!view.overrides.empty() && (is_graph || is_directory(view.model)))
    fail(ErrorCode::kUsage, "'", view.overrides[0], "': params are for model files; ", view.model,
         " is a finished model");
  program::LoadOptions options;
  options.function = view.function;
  options.overrides = view.overrides;
  return program::trace_model(view.model, options, view.dims, kValues);
}

}  // namespace

bool is_config(const std::string& file) {
  config::Diagnostics diagnostics;
  const config::Node document = config::read_document(file, diagnostics);
  return document.is_map() && document.find("data") != nullptr;
}

void draw_model(const GraphView& view) {
  if (!view.output.ends_with(".svg"))
    fail(ErrorCode::kUsage, "--graph '", view.output,
         "': pictures are SVG files; name it FILE.svg");
  check_output(view.output, view.overwrite, view.model);
  const program::TracedModel model = trace(view);
  const inspect::GraphPicture picture =
      inspect::draw_graph(*model.function, {.title = model.name, .depth = view.depth});
  write_file_atomically(view.output, picture.svg);
  if (view.json)
    print_json({{"graph", view.output},
                {"name", model.name},
                {"operations", picture.operations},
                {"boxes", picture.boxes}});
  else
    print(str(view.output, ": ", picture.operations, " operations in ", picture.boxes, " boxes\n"));
}

}  // namespace paddle::cli
