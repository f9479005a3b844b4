// paddle schema NAME: the JSON Schema of a kind of config, for editors.

#include <map>

#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "config/json_schema.h"
#include "config/sections.h"
#include "data/named_dataset.h"
#include "lang/syntax/model_schema.h"
#include "plugin/yaml_schema.h"
#include "plugin_report.h"
#include "sections/sections.h"
#include "train/config/run_config.h"
#include "tune/parallel/cluster.h"

namespace {

using namespace paddle;

struct Document {
  std::string title;
  std::function<config::Schema()> schema;
};

/// The config of a run, each of the sections that tools read, and other files.
std::map<std::string, Document> documents() {
  std::map<std::string, Document> all = {
      {"train", {"a config of paddle-train", [] { return train::run_schema(); }}},
      {"model", {"a model file", lang::model_schema}},
      {"dataset", {"the description of a dataset", data::description_schema}},
      {"plugin", {"a file NAME.plugin.yaml", plugin::yaml_schema}},
      {"plugin-report", {"the report.json of paddle plugin check", cli::report_schema}},
      {"cluster", {"a cluster of paddle-tune --plan", tune::cluster_schema}}};
  for (const auto& section : config::section_registry().all())
    all[section->name] = {"the section " + section->name + " of a config: " + section->doc,
                          section->schema};
  return all;
}

int run_schema(int argc, char** argv) {
  cli::App app{"Prints the JSON Schema of a kind of config, for completion and checks in editors."};
  std::string name = "train";
  std::vector<std::string> names;
  const std::map<std::string, Document> all = documents();
  for (const auto& [known, document] : all) names.push_back(known);
  app.add_option("NAME", name, "one of " + join(names, ", "));
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  const auto found = all.find(name);
  if (found == all.end())
    fail(ErrorCode::kUsage, "unknown schema '", name, "'", did_you_mean(name, names),
         "; there are ", join(names, ", "));
  cli::print(config::json_schema(found->second.schema(), found->second.title));
  return 0;
}

}  // namespace

namespace paddle::cli {

int schema_command(int argc, char** argv) {
  return run_tool([&] {
    register_sections();
    return run_schema(argc, argv);
  });
}

}  // namespace paddle::cli
