#pragma once
// Plug-ins: files that add operations, kernels and other parts to a running program. A plug-in is a
// shared object with the entry of include/paddle/plugin/plugin.h, or a file NAME.plugin.yaml
// without code. Only files that the user names are loaded. Each is checked before it is opened,
// everything that it offers before any of it is registered, and it is never unloaded.
//
// A plug-in is native code with the rights of its user: the checks are against mistakes.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/document.h"
#include "ops/core/op.h"

namespace paddle::plugin {

/// The description that a file has of itself, read without running any of it.
struct Info {
  std::string path;
  std::string name, version, summary;
  bool is_native = false;  ///< a shared object
  uint32_t abi_major = 0, abi_minor = 0;
  std::vector<std::string> needed;    ///< libraries of a shared object
  std::vector<std::string> exported;  ///< its symbols
  /// Of a YAML file: the names in each section, such as "operations" and "optimizers".
  std::vector<std::pair<std::string, std::vector<std::string>>> sections;
  bool has_rules = false;  ///< of a YAML file: rewrite rules
};
/// kDevice for a file that is not a plug-in of this version of the interface, kConfig for YAML that
/// does not fit.
Info read_info(const std::string& path);

/// A plug-in that is loaded. It lives to the end of the process.
struct Plugin {
  Provider provider;
  std::string path;  ///< absolute
  std::string sha256;
  std::string summary;
  /// The state of the process that loading it has changed, and the loader has put back; or "".
  std::string state_change;
  std::vector<std::string> operations;
  std::vector<std::string> kernels;  ///< operations that it has kernels of, once for each kernel
  std::vector<std::string> kernel_backends;  ///< of each of them: "cpu", or a device
  std::vector<std::string> devices;          ///< kinds of devices
  std::vector<std::string> passes;           ///< "acme.fold_scales"
  std::vector<std::string> rules;            ///< rewrite rules, "acme.silu"
  std::vector<std::string> transports;       ///< "acme.ring", as in PADDLE_TRANSPORT
  std::vector<std::string> tables;           ///< "acme.file_rows", as in train.tables
  std::vector<std::string> readers;          ///< "acme.rows", as kinds of dataset
  std::vector<std::string> compilers;        ///< "acme.loops", as in compile.compiler
  std::vector<std::string> losses;           ///< those of `operations` that are losses
  std::vector<std::string> optimizers;       ///< "acme.signum", as in optimizer.name
  std::vector<std::string> schedules;        ///< "acme.triangle", as in schedule.name
  std::vector<std::string> metrics;          ///< "acme.f_half", as in calls
  std::vector<std::string> transforms;       ///< "acme.gamma", as in data.transforms
  std::vector<std::string> precision;        ///< operations whose precision it changes
  std::vector<std::string> sharding;         ///< operations that it has rules for several ranks for
  /// Operands of metrics and fields of transforms for the checks, by their names.
  std::map<std::string, std::vector<std::string>> samples;

  /// The names of what it registers, by kind: the members from `operations` on.
  std::vector<std::pair<const char*, const std::vector<std::string>*>> parts() const {
    return {{"operations", &operations}, {"kernels", &kernels},       {"devices", &devices},
            {"passes", &passes},         {"rules", &rules},           {"transports", &transports},
            {"tables", &tables},         {"readers", &readers},       {"compilers", &compilers},
            {"losses", &losses},         {"optimizers", &optimizers}, {"schedules", &schedules},
            {"metrics", &metrics},       {"transforms", &transforms}, {"precision", &precision},
            {"sharding", &sharding}};
  }
};

struct LoadOptions {
  SourceLocation place = {};  ///< of the config that names the file; empty for a command line
  std::string sha256 = {};    ///< first digits that the hash of the file must have; "" for any
  const config::Node* options = nullptr;  ///< a map with keys that the plug-in declares
};
/// Loads a file, or returns the plug-in of a file that is loaded already. kUsage if there is no
/// such file (kConfig with the place where a config names it), kDevice if it cannot be loaded here,
/// kConfig for a schema or options that do not fit. A plug-in that is loaded already keeps the
/// options that it has.
const Plugin& load(const std::string& path, const LoadOptions& options = {});
/// Loads these files and those of PADDLE_PLUGINS, which are separated by ':'. In the place of a
/// file there may be a name of the user's list (user_list.h).
void load_all(const std::vector<std::string>& files);
/// In the order of loading.
std::vector<const Plugin*> loaded();
const Plugin* find(std::string_view name);

/// Loads what the key `plugins` of a config names, and puts names and versions in the place of
/// files: a config that is saved with a model names no files. Entries that are names ("acme >=
/// 1.2") must be loaded already, or be in the user's list: kConfig.
void load_configured(config::Node& document);

/// Receives notes (level 0) and warnings (1) of plug-ins; without one they are dropped.
void set_log(std::function<void(int level, const std::string& text)> sink);

}  // namespace paddle::plugin
