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

/// A file that is published somewhere.
struct RemoteFile {
  std::string path;  ///< where it belongs: in the folder that `data://` means, or of the download
  std::string url;
  std::optional<uint64_t> size;
  std::string sha256;  ///< all of its digits, or at least the first 8
};

struct DatasetDescription {
  std::string name, file;
  std::string description, license, source;
  std::vector<std::pair<std::string, std::string>> packages;  ///< "debian" and a package
  std::vector<std::pair<std::string, std::string>> fields;    ///< and what they mean
  std::vector<std::pair<std::string, DatasetOptions>> parts;  ///< train, valid, test
};

/// The value of a key `files`: a list of remote files.
config::Spec remote_files_spec();
std::vector<RemoteFile> read_remote_files(const config::Section& section);

/// "python3-sklearn (debian), scikit-learn (pypi)".
std::string packages_text(const std::vector<std::pair<std::string, std::string>>& packages);

/// The schema of a description.
config::Schema description_schema();
/// The keys of `kind: dataset` in a config.
void add_named_keys(config::Schema& schema);

/// Folders of this name, such as `datasets`, in the current folder and its parents, in the folder
/// of the sources that the program was built from, and in the installation.
std::vector<std::string> shared_folders(const std::string& name);
/// Names of all descriptions, sorted.
std::vector<std::string> dataset_names();
/// A description by its name, or by the path of its file (`near`: the folder that a relative one
/// starts from). kConfig if there is none, with the nearest name.
DatasetDescription read_description(const std::string& name, const std::string& near = ".");

/// The part of a description that tells how its files come to this machine.
struct DatasetOrigin {
  std::string description, license;
  std::vector<std::pair<std::string, std::string>> packages;
  std::vector<RemoteFile> files;
};
/// Of the description of this name; none if there is none.
std::optional<DatasetOrigin> find_dataset_origin(const std::string& name);
/// The description that lists this file, a path after `data://`; "" if none does.
std::string dataset_with_file(const std::string& path);

/// Replaces the datasets of a `data:` section that others state: `split` and `{like: NAME}`
/// (related_datasets.h), and `{kind: dataset, name: …}` by what the description says, with other
/// keys of the config, such as `range`, merged over it.
void expand_datasets(config::Node& section, config::Diagnostics& diagnostics);

}  // namespace paddle::data
