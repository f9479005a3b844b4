#include "plugin/user_list.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/text.h"
#include "plugin/plugin.h"

namespace paddle::plugin {
namespace {

using nlohmann::ordered_json;

/// A list of more bytes is not one.
constexpr uint64_t kMaxListBytes = 1 << 20;

void write(std::vector<ListedPlugin> list) {
  std::ranges::sort(list, {}, &ListedPlugin::name);
  ordered_json plugins = ordered_json::object();
  for (const ListedPlugin& each : list)
    plugins[each.name] = {{"version", each.version}, {"path", each.path}, {"sha256", each.sha256}};
  const std::string path = user_list_path();
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  if (failed) fail(ErrorCode::kDevice, path, ": ", failed.message());
  write_file_atomically(path, ordered_json({{"version", 1}, {"plugins", plugins}}).dump(2) + "\n");
}

}  // namespace

std::string user_list_path() {
  if (const std::string own = environment("PADDLE_PLUGIN_LIST"); !own.empty()) return own;
  if (const std::string folder = environment("XDG_CONFIG_HOME"); !folder.empty())
    return join_path(folder, "paddle/plugins.json");
  return join_path(environment("HOME").empty() ? "." : environment("HOME"),
                   ".config/paddle/plugins.json");
}

std::vector<ListedPlugin> read_user_list() {
  const std::string path = user_list_path();
  if (!file_exists(path)) return {};
  std::vector<ListedPlugin> out;
  const auto bad = [&](const std::string& what) {
    fail(ErrorCode::kConfig, path, ": ", what, "; delete the file to start again");
  };
  std::error_code failed;
  if (std::filesystem::file_size(path, failed) > kMaxListBytes) bad("is too large for a list");
  const ordered_json list = ordered_json::parse(read_file(path), nullptr, false);
  if (!list.is_object() || !list.contains("plugins") || !list["plugins"].is_object())
    bad("is not a list of plug-ins");
  for (const auto& [name, entry] : list["plugins"].items()) {
    ListedPlugin each{name, "", "", ""};
    for (auto& [key, value] : {std::pair{"version", &each.version}, std::pair{"path", &each.path},
                               std::pair{"sha256", &each.sha256}}) {
      if (!entry.is_object() || !entry.contains(key) || !entry[key].is_string())
        bad(str("the plug-in '", name, "' has no ", key));
      *value = entry[key].get<std::string>();
    }
    out.push_back(std::move(each));
  }
  std::ranges::sort(out, {}, &ListedPlugin::name);
  return out;
}

std::optional<ListedPlugin> find_listed(const std::string& name) {
  for (ListedPlugin& each : read_user_list())
    if (each.name == name) return std::move(each);
  return std::nullopt;
}

ListedPlugin add_to_user_list(const std::string& name, const std::string& path) {
  const Info info = read_info(path);
  if (info.name != name)
    fail(ErrorCode::kUsage, path, ": is the plug-in '", info.name, "', not '", name, "'");
  std::error_code failed;
  const std::string absolute = std::filesystem::canonical(path, failed).string();
  if (failed) fail(ErrorCode::kUsage, path, ": ", failed.message());
  ListedPlugin added{name, info.version, absolute, sha256_of_file(absolute)};
  std::vector<ListedPlugin> list = read_user_list();
  std::erase_if(list, [&](const ListedPlugin& each) { return each.name == name; });
  list.push_back(added);
  write(std::move(list));
  return added;
}

void remove_from_user_list(const std::string& name) {
  std::vector<ListedPlugin> list = read_user_list();
  std::vector<std::string> names;
  for (const ListedPlugin& each : list) names.push_back(each.name);
  if (std::erase_if(list, [&](const ListedPlugin& each) { return each.name == name; }) == 0)
    fail(ErrorCode::kUsage, user_list_path(), ": has no plug-in '", name, "'",
         did_you_mean(name, names));
  write(std::move(list));
}

}  // namespace paddle::plugin
