#pragma once
// The user's list of plug-ins: short names for files, so that a config can say `plugins: [acme]`.
// It is the only state that plug-ins have on a machine.

#include <optional>
#include <string>
#include <vector>

namespace paddle::plugin {

struct ListedPlugin {
  std::string name, version, path, sha256;
};

/// $PADDLE_PLUGIN_LIST, or paddle/plugins.json in the user's folder of configurations.
std::string user_list_path();
/// The list in alphabetical order; empty if there is none. kConfig if the file is damaged.
std::vector<ListedPlugin> read_user_list();
/// The entry of a name, or nullopt.
std::optional<ListedPlugin> find_listed(const std::string& name);
/// Adds a file under the name that it states, or replaces that entry. kUsage if `name` is not the
/// file's.
ListedPlugin add_to_user_list(const std::string& name, const std::string& path);
/// kUsage if there is no such name.
void remove_from_user_list(const std::string& name);

}  // namespace paddle::plugin
