// paddle-data [NAME]: the datasets that configs can name: a list, or what one is and whether its
// files are there.

#include <nlohmann/json.hpp>

#include <algorithm>

#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "data/named_dataset.h"
#include "data/report.h"
#include "sections/sections.h"

namespace {

using namespace paddle;
using nlohmann::ordered_json;

/// The result of reading a part.
struct Checked {
  std::string name;
  data::DatasetPtr dataset;  ///< null if the files are missing or wrong
  data::DataReport report;
  std::string problem;
};

std::vector<Checked> check(const data::DatasetDescription& description) {
  std::vector<Checked> out;
  std::vector<data::Fitted> fitted;
  for (const auto& [name, options] : description.parts) {
    Checked& part = out.emplace_back();
    part.name = name;
    try {
      data::DatasetOptions own = options;
      // Later parts have the vocabularies and classes of the first one, as in training.
      if (!fitted.empty()) data::apply_fitted(own, fitted);
      part.dataset = data::make_dataset(own);
      if (out.size() == 1) fitted = part.dataset->fitted();
      part.report = data::check_data(*part.dataset);
      if (!part.report.bad.empty()) part.problem = part.report.bad[0];
    } catch (const Error& error) {
      part.problem = error.what();
    }
  }
  return out;
}

ordered_json json_of(const data::DatasetDescription& description,
                     const std::vector<Checked>& parts) {
  ordered_json out = {{"name", description.name},
                      {"file", description.file},
                      {"description", description.description},
                      {"license", description.license}};
  if (!description.source.empty()) out["source"] = description.source;
  for (const auto& [kind, name] : description.packages) out["packages"][kind] = name;
  for (const Checked& part : parts) {
    ordered_json& own = out["parts"][part.name];
    own["usable"] = part.problem.empty();
    if (!part.problem.empty()) own["problem"] = part.problem;
    if (!part.dataset) continue;
    own["samples"] = part.report.samples;
    own["paths"] = part.report.paths;
    for (const data::Field& field : part.report.fields) {
      ordered_json described = {
          {"name", field.name}, {"dtype", text(field.dtype)}, {"shape", field.shape}};
      if (field.class_count > 0) described["classes"] = field.class_count;
      own["fields"].push_back(std::move(described));
    }
  }
  return out;
}

int describe(const std::string& name, bool json) {
  const data::DatasetDescription description = data::read_description(name);
  const std::vector<Checked> parts = check(description);
  const auto bad = std::find_if(parts.begin(), parts.end(),
                                [](const Checked& part) { return !part.problem.empty(); });
  if (json) {
    cli::print(json_of(description, parts).dump() + "\n");
  } else {
    cli::print(str(description.name, ": ", description.description,
                   "\nlicense: ", description.license, "\n",
                   description.source.empty() ? "" : "source: " + description.source + "\n",
                   description.packages.empty()
                       ? ""
                       : "packages: " + data::packages_text(description.packages) + "\n",
                   "file: ", description.file, "\n"));
    for (const auto& [field, meaning] : description.fields)
      cli::print(str("  ", field, ": ", meaning, "\n"));
    for (const Checked& part : parts)
      cli::print(str("\n", part.name, "\n", part.dataset ? part.report.text() : ""));
    for (size_t p = 1; p < parts.size(); ++p)
      if (parts[0].dataset && parts[p].dataset)
        if (const auto same = data::find_duplicates(*parts[p].dataset, *parts[0].dataset);
            same.count > 0)
          cli::print_warning(same.text(parts[p].name, parts[0].name));
  }
  if (bad == parts.end()) return 0;
  const std::string brought = data::packages_text(description.packages);
  fail(ErrorCode::kData, bad->problem,
       brought.empty() ? "" : "; the files come with the package " + brought);
}

int list_datasets(bool json) {
  ordered_json all = ordered_json::array();
  std::vector<std::array<std::string, 2>> rows;
  size_t width = 0;
  for (const std::string& name : data::dataset_names()) {
    const auto description = data::find_dataset_origin(name);
    if (!description) continue;
    all.push_back({{"name", name},
                   {"description", description->description},
                   {"license", description->license}});
    rows.push_back({name, description->description});
    width = std::max(width, name.size());
  }
  if (json) {
    cli::print(ordered_json({{"datasets", all}}).dump() + "\n");
    return 0;
  }
  if (rows.empty()) fail(ErrorCode::kData, "no folder named datasets/ with descriptions was found");
  for (const auto& [name, doc] : rows)
    cli::print(name + std::string(width - name.size() + 2, ' ') + doc + "\n");
  return 0;
}

int run_data(int argc, char** argv) {
  cli::App app{"Lists the datasets that configs can name, or describes and checks one."};
  std::string name;
  bool json = false;
  app.add_option("NAME", name, "a dataset, or the file of a description; default: list all");
  app.add_flag("--json", json, "print one JSON object");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  return name.empty() ? list_datasets(json) : describe(name, json);
}

}  // namespace

namespace paddle::cli {

int data_command(int argc, char** argv) {
  return run_tool([&] {
    register_sections();
    return run_data(argc, argv);
  });
}

}  // namespace paddle::cli
