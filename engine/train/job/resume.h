#pragma once
// Config changes that a resumed run accepts. It continues bit for bit as the run would have; only
// settings of its length, its reports, the locations of files and its rates may differ from the
// checkpoint's, everything else is rejected.

#include <string>
#include <vector>

#include "config/document.h"

namespace paddle::train {

/// A value of the config that is not what the checkpoint's config says.
struct ConfigChange {
  std::string path;    ///< "optimizer.lr"
  std::string before;  ///< "" if it was absent
  std::string after;
  SourceLocation place;
};

/// Patterns of the keys that may change on resume, for messages and docs/guide/resuming.md.
const std::vector<std::string>& changeable_keys();

/// All differences between two resolved configs, in the order of the new one.
std::vector<ConfigChange> config_changes(const config::Node& before, const config::Node& after);
/// Throws kConfig, naming each, if some may not change; returns the others.
std::vector<ConfigChange> check_changes(const config::Node& before, const config::Node& after);

}  // namespace paddle::train
