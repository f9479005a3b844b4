// paddle-new RECIPE --data PATH -o config.yaml: a commented config, filled in from the data.

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "recipes/recipe.h"

namespace {

using namespace paddle;

int run_new(int argc, char** argv) {
  cli::App app{"Writes a commented config for a task, filled in from a look at your data."};
  recipes::RecipeRequest request;
  bool list = false, overwrite = false, dry_run = false, json = false;
  app.add_option("RECIPE", request.recipe, "the task; --list shows all");
  app.add_option("--data", request.data, "the data: a folder or a file");
  app.add_option("--base", request.base, "the run to continue from, of the recipe lora");
  app.add_option("-o,--output", request.output, "the config to write (default: RECIPE.yaml)");
  app.add_option(
         "--tokens", request.tokens,
         "language-model: characters (default), bytes, or bpe: subwords of a byte-level BPE "
         "tokenizer that is trained on the text and written next to the config")
      ->check(cli::one_of({"characters", "bytes", "bpe"}));
  app.add_option("--vocabulary-size", request.vocabulary_size,
                 "with --tokens bpe: size of the vocabulary (default: by the size of the text, at "
                 "most 8000)")
      ->check(cli::in_range(int64_t{1}, int64_t{1} << 22));
  app.add_option("--target", request.target,
                 "of a table: the column to predict (default: the last one)");
  app.add_option("--delimiter", request.delimiter,
                 "of a table: the delimiter of columns, or tab (default: detected)");
  app.add_option("--group", request.group,
                 "time-series: the column that identifies the series (default: detected)");
  app.add_option(
      "--time", request.time,
      "time-series: the column of timestamps, which orders the rows (default: detected)");
  app.add_option("--images", request.images, "detection: the folder of a COCO file's images");
  app.add_flag("--small", request.small, "a small model that trains in seconds, for a first try");
  cli::add_overwrite(app, overwrite);
  app.add_flag("--list", list, "list the recipes");
  app.add_flag("--dry-run", dry_run, "print the config, write nothing");
  app.add_flag("--json", json,
               "print a JSON object on the last line: the config, other files, and what was found");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  if (list) {
    if (json) {
      nlohmann::ordered_json names = nlohmann::ordered_json::array();
      for (const auto& each : recipes::list_recipes())
        names.push_back({{"name", each.name}, {"description", each.doc}});
      cli::print(nlohmann::ordered_json({{"recipes", names}}).dump() + "\n");
      return 0;
    }
    size_t width = 0;
    for (const auto& each : recipes::list_recipes()) width = std::max(width, each.name.size());
    for (const auto& each : recipes::list_recipes())
      cli::print(each.name + std::string(width - each.name.size() + 2, ' ') + each.doc + "\n");
    return 0;
  }
  if (request.recipe.empty())
    fail(ErrorCode::kUsage, "no recipe is given; `paddle new --list` shows all");
  if (request.output.empty()) request.output = request.recipe + ".yaml";
  if (!dry_run) cli::check_output(request.output, overwrite);
  const recipes::RecipeResult result = recipes::make_config(request);
  if (dry_run) {
    cli::print(result.config);
  } else {
    for (const auto& [path, content] : result.files) cli::check_output(path, overwrite);
    for (const auto& [path, content] : result.files) write_file_atomically(path, content);
    write_file_atomically(request.output, result.config);
    for (const std::string& line : result.found) cli::print_line(line);
    for (const auto& [path, content] : result.files) cli::print(path + ": the tokenizer\n");
    cli::print(request.output + ": train with `paddle train " + request.output + "`\n");
  }
  if (json) {
    nlohmann::ordered_json files = nlohmann::ordered_json::array();
    for (const auto& [path, content] : result.files) files.push_back(path);
    cli::print(nlohmann::ordered_json({{"config", request.output},
                                       {"files", files},
                                       {"found", result.found},
                                       {"written", !dry_run}})
                   .dump() +
               "\n");
  }
  return 0;
}

}  // namespace

namespace paddle::cli {

int new_command(int argc, char** argv) {
  return run_tool([&] { return run_new(argc, argv); });
}

}  // namespace paddle::cli
