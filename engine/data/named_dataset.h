#pragma once
// Descriptions of datasets (`datasets/NAME.yaml`): where the files are, their license, the package
// that brings them, fields and parts. A config refers to a part by name:
//   train: {kind: dataset, name: fashion-mnist}

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/document.h"
#include "config/schema.h"
#include "data/options.h"

namespace paddle::data {

struct DatasetDescription {
  std::string name, file;
  std::string description, license, source;
  std::vector<std::pair<std::string, std::string>> packages;  ///< "debian" and a package
  std::vector<std::pair<std::string, std::string>> fields;    ///< and what they mean
  std::vector<std::pair<std::string, DatasetOptions>> parts;  ///< train, valid, test
};

/// The schema of a description.
config::Schema description_schema();
/// The keys of `kind: dataset` in a config.
void add_named_keys(config::Schema& schema);

/// The folders that are searched: those named `datasets` beside the current folder and its parents,
/// beside the program, and where the program is installed.
std::vector<std::string> dataset_folders();
/// Names of all descriptions, sorted.
std::vector<std::string> dataset_names();
/// A description by its name, or by the path of its file (`near`: the folder that a relative one
/// starts from). kConfig if there is none, with the nearest name.
DatasetDescription read_description(const std::string& name, const std::string& near = ".");

/// Replaces `{kind: dataset, name: …}` in the parts of a `data:` section by what the description
/// says; other keys of the config, such as `range`, are laid over it.
void expand_datasets(config::Node& section, config::Diagnostics& diagnostics);

}  // namespace paddle::data
