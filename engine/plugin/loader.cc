// Which files are loaded, and when.

#include <sys/stat.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <mutex>

#include "base/files.h"
#include "base/sha256.h"
#include "base/version.h"
#include "config/kind_keys.h"
#include "paddle/plugin/device.h"
#include "plugin/host.h"
#include "plugin/registration.h"
#include "plugin/user_list.h"
#include "runtime/execute.h"

namespace paddle::plugin {
namespace {

constexpr std::string_view kYamlSuffix = ".plugin.yaml";

bool is_yaml(const std::string& path) { return path.ends_with(kYamlSuffix); }

struct Registry {
  std::recursive_mutex mutex;
  std::deque<std::unique_ptr<Parts>> plugins;
};

Registry& registry() {
  static auto* const all = new Registry;  // plug-ins are never unloaded
  return *all;
}

/// kDevice if the file is not a regular one, or if others than its owner may write it.
struct stat checked_status(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
    fail(ErrorCode::kDevice, path, ": is not a file");
  if (status.st_mode & S_IWOTH)
    fail(ErrorCode::kDevice, path, ": other users may write it (chmod o-w)");
  return status;
}

std::string hash_of(const std::string& path, const std::string& wanted) {
  std::string hash = sha256_of_file(path);
  std::string lower = wanted;
  for (char& c : lower)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  if (!hash.starts_with(lower))
    fail(ErrorCode::kDevice, path, ": has the sha256 ", hash.substr(0, 16), "…, expected ",
         wanted.substr(0, 16));
  return hash;
}

struct Requirement {
  std::string name, version;
};

/// "acme", "acme >= 1.2"; nullopt for a path.
std::optional<Requirement> as_requirement(const std::string& text) {
  const size_t sign = text.find(">=");
  const std::string name(trim(std::string_view(text).substr(0, sign)));
  const bool word = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!word) return std::nullopt;
  return Requirement{name, sign == std::string::npos
                               ? ""
                               : std::string(trim(std::string_view(text).substr(sign + 2)))};
}

void require_loaded(const Requirement& wanted, const LoadOptions& options) {
  const SourceLocation& place = options.place;
  const Plugin* found = find(wanted.name);
  if (!found)
    if (const auto listed = find_listed(wanted.name))
      found = &load(listed->path, {place, listed->sha256, options.options});
  const std::string needs = wanted.name + (wanted.version.empty() ? "" : " ≥ " + wanted.version);
  if (!found)
    throw Error(ErrorCode::kConfig,
                "needs the plug-in " + needs + "; name its file with --plugin or PADDLE_PLUGINS",
                place);
  if (is_older_version(found->provider.version, wanted.version))
    throw Error(ErrorCode::kConfig,
                str("needs the plug-in ", needs, ", loaded is ", found->provider.version), place);
}

/// The options of a plug-in that is loaded: those of a config, or the defaults.
KindOptions options_of(const std::vector<KindKey>& keys, const std::string& path,
                       const config::Node* given) {
  if (!given) {
    if (const std::string key = required_key(keys); !key.empty())
      fail(ErrorCode::kUsage, path, ": needs the option '", key,
           "', which only a config gives: plugins: [{path: ", path, ", options: {", key, ": …}}]");
    return default_options(keys);
  }
  config::Node options = *given;
  config::Diagnostics diagnostics;
  config::schema_of(keys).resolve(options, "plugins.options", diagnostics);
  diagnostics.raise();
  return config::options_of(keys, config::Section(options));
}

/// Calls the functions `stop` of all plug-ins, the one that was loaded last first.
void stop_all() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (auto parts = all.plugins.rbegin(); parts != all.plugins.rend(); ++parts)
    if (const auto stop = std::exchange((*parts)->stop, nullptr)) stop();
}

}  // namespace

Info read_info(const std::string& path) {
  if (!file_exists(path)) fail(ErrorCode::kUsage, path, ": no such file");
  checked_status(path);
  return is_yaml(path) ? yaml_info(path) : native_info(path);
}

const Plugin& load(const std::string& path, const LoadOptions& options) {
  namespace fs = std::filesystem;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::error_code missing;
  const std::string absolute = fs::canonical(path, missing).string();
  if (missing) {
    if (options.place.file.empty()) fail(ErrorCode::kUsage, path, ": no such plug-in file");
    throw Error(ErrorCode::kConfig, "plugins: no such file: " + path, options.place);
  }
  for (const auto& parts : all.plugins)
    if (parts->plugin.path == absolute) {
      hash_of(path, options.sha256);
      return parts->plugin;
    }
  runtime::register_backends();  // what a plug-in adds comes before what there is
  const struct stat before = checked_status(path);
  const std::string hash = hash_of(path, options.sha256);
  std::unique_ptr<Parts> parts = is_yaml(path) ? read_yaml_plugin(path) : open_native_plugin(path);
  const struct stat after = checked_status(path);
  if (before.st_ino != after.st_ino || before.st_size != after.st_size ||
      before.st_mtime != after.st_mtime)
    fail(ErrorCode::kDevice, path, ": the file has changed while it was loaded");
  const KindOptions given = options_of(parts->keys, path, options.options);
  Plugin& plugin = parts->plugin;
  plugin.path = absolute;
  plugin.sha256 = hash;
  plugin.operations = parts->definitions.names();
  for (const KernelContext& kernel : parts->kernels) {
    plugin.kernels.push_back(kernel.operation);
    plugin.kernel_backends.push_back(kernel.backend);
  }
  for (const paddle_device_api* device : parts->devices) plugin.devices.emplace_back(device->name);
  for (const TransportContext& transport : parts->transports)
    plugin.transports.push_back(transport.name);
  for (const TableContext& table : parts->tables) plugin.tables.push_back(table.name);
  for (const PassContext& pass : parts->passes) plugin.passes.push_back(pass.name);
  for (const ReaderContext& reader : parts->readers) plugin.readers.push_back(reader.name);
  for (const auto& kind : parts->optimizers) plugin.optimizers.push_back(kind.name);
  for (const auto& kind : parts->schedules) plugin.schedules.push_back(kind.name);
  for (const auto& info : parts->metrics) plugin.metrics.push_back(info.name);
  for (const auto& info : parts->transforms) plugin.transforms.push_back(info.name);
  for (const PrecisionRule& rule : parts->precision) plugin.precision.push_back(rule.operation);
  for (const auto* rules : {&parts->definitions.sharding(), &std::as_const(parts->sharding)})
    for (const ShardingRule& rule : *rules) plugin.sharding.push_back(rule.operation);
  for (CompilerContext& compiler : parts->compilers) {
    compiler.sha256 = hash;
    plugin.compilers.push_back(compiler.name);
  }
  // From here on the registries point into it, so it is kept even if `start` fails.
  all.plugins.push_back(std::move(parts));
  Parts& kept = *all.plugins.back();
  const auto stop = std::exchange(kept.stop, nullptr);  // of a plug-in that was started
  try {
    register_parts(kept);
    if (kept.start) kept.start(given);
    kept.stop = stop;
    if (!kept.plugin.state_change.empty())
      host().log(1, (path + ": " + kept.plugin.state_change + ", which was put back").c_str());
    static const bool stops_at_exit = std::atexit(stop_all) == 0;
    (void)stops_at_exit;
  } catch (const Error& e) {
    if (!e.location().file.empty()) throw;
    throw Error(ErrorCode::kDevice, path + ": " + e.message());
  }
  return plugin;
}

void load_all(const std::vector<std::string>& files) {
  const auto load_one = [](const std::string& file) {
    const auto wanted = file_exists(file) ? std::nullopt : as_requirement(file);
    const auto listed = wanted ? find_listed(wanted->name) : std::nullopt;
    if (listed)
      load(listed->path, {{}, listed->sha256});
    else
      load(file);
  };
  for (const std::string& file : files) load_one(file);
  const char* const environment = std::getenv("PADDLE_PLUGINS");
  if (!environment) return;
  for (const std::string& file : split(environment, ':'))
    if (!file.empty()) load_one(file);
}

std::vector<const Plugin*> loaded() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<const Plugin*> out;
  for (const auto& parts : all.plugins) out.push_back(&parts->plugin);
  return out;
}

const Plugin* find(std::string_view name) {
  for (const Plugin* plugin : loaded())
    if (plugin->provider.name == name) return plugin;
  return nullptr;
}

void load_configured(config::Node& document) {
  config::Node* const list = document.find("plugins");
  if (!list || list->is_null()) return;
  if (!list->is_sequence())
    throw Error(ErrorCode::kConfig,
                "'plugins': expected a list of files, found " + list->describe(), list->location());
  for (config::Node& item : list->items) {
    LoadOptions options;
    options.place = item.location();
    const config::Node* file = &item;
    if (item.is_map()) {
      for (const config::Entry& entry : item.entries)
        if (entry.key.text != "path" && entry.key.text != "sha256" && entry.key.text != "options")
          throw Error(ErrorCode::kConfig, "plugins: unknown key '" + entry.key.text + "'",
                      entry.key.location());
      file = item.find("path");
      options.options = item.find("options");
      if (options.options && options.options->is_null()) options.options = nullptr;
      if (options.options && !options.options->is_map())
        throw Error(ErrorCode::kConfig,
                    "plugins: options: expected a map, found " + options.options->describe(),
                    options.options->location());
      if (const config::Node* const hash = item.find("sha256")) {
        options.sha256 = hash->as_string();
        if (!is_sha256_prefix(options.sha256))
          throw Error(ErrorCode::kConfig, "plugins: sha256: expected 8 to 64 hexadecimal digits",
                      hash->location());
      }
    }
    if (!file || !file->is_scalar())
      throw Error(ErrorCode::kConfig, "plugins: expected a file, found " + item.describe(),
                  item.location());
    if (const auto wanted = as_requirement(file->text)) {
      require_loaded(*wanted, options);
      continue;
    }
    const Plugin& plugin = load(config::resolve_path(*file), options);
    const config::Node name =
        config::make_scalar(plugin.provider.name + " >= " + plugin.provider.version, file->source);
    if (!options.options) {
      item = name;
      continue;
    }
    config::Node kept = config::make_map(item.source);
    kept.set("path", name);
    kept.set("options", *options.options);
    item = std::move(kept);
  }
}

}  // namespace paddle::plugin
