#pragma once
// The names that `paddle get` knows: data sets whose descriptions (datasets/NAME.yaml) list files
// to download, and the weights of models/pretrained.yaml.

#include <optional>
#include <string>
#include <vector>

#include "data/named_dataset.h"
#include "hub/download.h"

namespace paddle::hub {

/// Published weights of a model.
struct Weights {
  std::string name, description, license;
  std::string model, rules;  ///< files of models/: the architecture, and the names of its weights
  std::vector<data::RemoteFile> files;
};

/// All of models/pretrained.yaml, sorted by name. kConfig for a file with mistakes.
std::vector<Weights> list_weights();
/// By name; none if there is none of this name.
std::optional<Weights> find_weights(const std::string& name);

/// The download of a file into `folder`: from its URL, or from $PADDLE_HUB/files/PATH.
Download download_of(const data::RemoteFile& file, const std::string& folder);

}  // namespace paddle::hub
