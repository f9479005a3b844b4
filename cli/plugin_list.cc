#include "plugin_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/sha256.h"
#include "common_plugins.h"
#include "config/overrides.h"
#include "conformance/probe.h"
#include "plugin/plugin.h"
#include "plugin/user_list.h"

namespace paddle::cli {
namespace {

using nlohmann::ordered_json;

std::string listed(const char* what, const std::vector<std::string>& names) {
  return names.empty() ? "" : str(", ", what, " ", join(names, ", "));
}

constexpr const char* kNone =
    "no plug-ins: name files with --plugin or PADDLE_PLUGINS, or add them to the list with\n"
    "paddle plugin add NAME FILE\n";

/// The state of an entry of the user's list: "", or the reason why it cannot be loaded.
std::string fault_of(const plugin::ListedPlugin& listed) {
  try {
    const plugin::Info info = plugin::read_info(listed.path);
    if (info.name != listed.name) return "the file is the plug-in '" + info.name + "' now";
    if (sha256_of_file(listed.path) != listed.sha256)
      return "the file has changed since it was added; add it again";
    return "";
  } catch (const Error& e) {
    return e.message();
  }
}

std::string list_loaded(bool json) {
  ordered_json all = ordered_json::array();
  std::string out;
  for (const plugin::ListedPlugin& each : plugin::read_user_list()) {
    if (plugin::find(each.name)) continue;  // below
    const std::string fault = fault_of(each);
    all.push_back({{"name", each.name},
                   {"version", each.version},
                   {"path", each.path},
                   {"sha256", each.sha256},
                   {"loaded", false},
                   {"fault", fault}});
    out += str(fmt::format("{:<18} {:<9} in the list", each.name, each.version),
               fault.empty() ? "" : ", cannot be loaded: " + fault, "  ", each.path, "\n");
  }
  for (const plugin::Plugin* loaded : plugin::loaded()) {
    ordered_json object = {{"name", loaded->provider.name},
                           {"version", loaded->provider.version},
                           {"path", loaded->path},
                           {"sha256", loaded->sha256},
                           {"loaded", true}};
    for (const auto& [part, names] : loaded->parts()) object[part] = *names;
    all.push_back(std::move(object));
    out += str(fmt::format("{:<18} {:<9} ", loaded->provider.name, loaded->provider.version),
               loaded->operations.size(), " operations, ", loaded->kernels.size(), " kernels",
               listed("devices", loaded->devices), listed("passes", loaded->passes),
               loaded->rules.empty() ? "" : str(", ", loaded->rules.size(), " rewrite rules"),
               listed("transports", loaded->transports), listed("tables", loaded->tables),
               listed("readers", loaded->readers), listed("compilers", loaded->compilers),
               listed("optimizers", loaded->optimizers), listed("schedules", loaded->schedules),
               listed("metrics", loaded->metrics), listed("transforms", loaded->transforms), "  ",
               loaded->path, "\n");
  }
  if (json) return all.dump() + "\n";
  return out.empty() ? kNone : out;
}

/// A file, and what names it.
struct Named {
  std::string path, by;
  std::string fault = {};  ///< known without opening it
};

/// A file, or that of a name in the user's list.
Named named(const std::string& text, const std::string& by) {
  if (file_exists(text)) return {text, by};
  const std::string name(trim(std::string_view(text).substr(0, text.find(">="))));
  if (const auto listed = plugin::find_listed(name)) return {listed->path, by, fault_of(*listed)};
  return {text, by, "no such file, and no such name in " + plugin::user_list_path()};
}

std::vector<Named> named_by_config(const std::string& path) {
  config::Diagnostics diagnostics;
  const config::Node document = config::read_extended(path, diagnostics);
  diagnostics.raise();
  std::vector<Named> out;
  const config::Node* const list = document.find("plugins");
  if (!list || !list->is_sequence()) return out;
  for (const config::Node& item : list->items) {
    const config::Node* const file = item.is_map() ? item.find("path") : &item;
    if (!file || !file->is_scalar()) continue;
    const std::string resolved = config::resolve_path(*file);
    out.push_back(named(file_exists(resolved) ? resolved : file->text, "config"));
  }
  return out;
}

std::string list_probed(const PluginListing& listing) {
  std::vector<Named> all;
  for (const std::string& file : named_plugins()) all.push_back(named(file, "command line"));
  if (!listing.config.empty())
    for (Named& each : named_by_config(listing.config)) all.push_back(std::move(each));
  for (const plugin::ListedPlugin& each : plugin::read_user_list())
    all.push_back({each.path, "list", fault_of(each)});
  ordered_json json = ordered_json::array();
  std::string out;
  std::vector<std::string> seen;
  for (const Named& each : all) {
    std::error_code ignored;
    const std::string absolute = std::filesystem::weakly_canonical(each.path, ignored).string();
    if (std::ranges::find(seen, absolute) != seen.end()) continue;
    seen.push_back(absolute);
    conformance::Probe probe;
    if (each.fault.empty())
      probe = conformance::probe_plugin(each.path, listing.timeout_seconds);
    else
      probe.fault = each.fault;
    ordered_json object = {
        {"name", probe.name},  {"version", probe.version},     {"path", absolute},
        {"named_by", each.by}, {"loads", probe.fault.empty()}, {"fault", probe.fault}};
    for (const auto& [part, names] : probe.parts) object[part] = names;
    json.push_back(std::move(object));
    out += fmt::format("{:<18} {:<9} {:<12}  {}\n", probe.name.empty() ? "?" : probe.name,
                       probe.version, each.by, absolute);
    if (!probe.fault.empty()) out += "  cannot be loaded: " + probe.fault + "\n";
    for (const auto& [part, names] : probe.parts)
      out += "  " + part + ": " + join(names, ", ") + "\n";
  }
  if (listing.json)
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return out.empty() ? kNone : out;
}

}  // namespace

std::string list_plugins(const PluginListing& listing) {
  return listing.probe ? list_probed(listing) : list_loaded(listing.json);
}

}  // namespace paddle::cli
