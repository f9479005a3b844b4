#pragma once
// A folder with versions of a model, each a model folder, and a file that names the one to use.

#include <string>
#include <vector>

namespace paddle::program {

/// Whether a folder is a store: it has the file CURRENT.
bool is_store(const std::string& folder);
/// The name of the version to use. kModel if the file is damaged or the version is missing.
std::string current_version(const std::string& store);
/// The versions of a store, by their numbers.
std::vector<std::string> list_versions(const std::string& store);
/// Makes a version the one to use, at one moment. kUsage if the store lacks it.
void set_current_version(const std::string& store, const std::string& version);
/// Writes the files of a folder to the disk, as far as they are not there.
void sync_folder(const std::string& folder);

}  // namespace paddle::program
