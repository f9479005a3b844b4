// paddle schema NAME: the JSON Schema of a kind of config, for editors.

#include <map>

#include <CLI/CLI.hpp>

#include "common.h"
#include "config/json_schema.h"
#include "data/data_config.h"
#include "quant_common/quant_config.h"
#include "train/config.h"

namespace {

using namespace paddle;

struct Document {
  const char* title;
  config::Schema (*schema)();
};

const std::map<std::string, Document>& documents() {
  static const std::map<std::string, Document> all = {
      {"train", {"a config of paddle-train", [] { return train::run_schema(); }}},
      {"data", {"the data section of a config", [] { return data::data_schema(); }}},
      {"quant", {"the quant section of a config", [] { return quant::quant_schema(); }}},
  };
  return all;
}

int run(int argc, char** argv) {
  CLI::App app{"Prints the JSON Schema of a kind of config, for completion and checks in editors."};
  std::string name = "train";
  std::vector<std::string> names;
  for (const auto& [known, document] : documents()) names.push_back(known);
  app.add_option("NAME", name, "one of " + join(names, ", "));
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  const auto found = documents().find(name);
  if (found == documents().end())
    fail(ErrorCode::kUsage, "unknown schema '", name, "'", did_you_mean(name, names),
         "; there are ", join(names, ", "));
  cli::print(config::json_schema(found->second.schema(), found->second.title));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return paddle::cli::run_tool([&] { return run(argc, argv); });
}
