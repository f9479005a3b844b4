#pragma once
// The steps of loading that YAML files and shared objects share. Not for use outside the room.

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/kind_options.h"
#include "plugin/compiler_adapter.h"
#include "plugin/definitions.h"
#include "plugin/kernel_adapter.h"
#include "plugin/pass_adapter.h"
#include "plugin/plugin.h"
#include "plugin/reader_adapter.h"
#include "plugin/table_adapter.h"
#include "plugin/text_kinds.h"
#include "plugin/transport_adapter.h"

namespace paddle::plugin {

/// How mixed precision treats an operation.
struct PrecisionRule {
  std::string operation;
  bool is_low = false;  ///< in 16 bits; else in float32
  SourceLocation place;
};

/// A plug-in with what its operations, kernels and other parts point to. Never freed.
struct Parts {
  explicit Parts(Plugin description)
      : plugin(std::move(description)), definitions(plugin.provider) {}
  Plugin plugin;
  Definitions definitions;
  std::deque<KernelContext> kernels;
  std::vector<const paddle_device_api*> devices;
  std::deque<TransportContext> transports;
  std::deque<TableContext> tables;
  std::deque<PassContext> passes;
  std::vector<ShardingRule> sharding;  ///< besides those of the definitions
  /// Rewrite rules, which can only be read once the operations are registered.
  std::string rules, rules_file;
  int rules_line = 1;
  std::deque<ReaderContext> readers;
  std::deque<CompilerContext> compilers;
  std::vector<optim::OptimizerKind> optimizers;
  std::vector<optim::ScheduleKind> schedules;
  std::vector<metrics::MetricInfo> metrics;
  std::vector<data::TransformInfo> transforms;
  std::vector<PrecisionRule> precision;
  std::vector<KindKey> keys;  ///< of `options` in a config
  /// Called with those once everything is registered; may be empty.
  std::function<void(const KindOptions& options)> start;
  /// Called before the program ends; may be empty.
  std::function<void()> stop;
};

/// A letter in lower case, and up to 62 more, digits or '_'.
bool is_word(std::string_view name);
/// kDevice, "PATH: cause", for a name that is reserved or has another form, or a version of another
/// form.
void check_name(const std::string& path, const std::string& name, const std::string& version);
/// Reads a map from operations, of the engine or of the plug-in, to their rules for several ranks.
/// kConfig with the place of an unknown operation, or of a rule that does not fit.
void read_sharding_rules(const config::Node& map, Parts& parts);
/// kDevice if a plug-in of this name is loaded.
void check_not_loaded(const std::string& path, const std::string& name);
/// Registers what a plug-in offers, which was checked: all or, by an Error, none.
void register_parts(Parts& parts);

std::unique_ptr<Parts> read_yaml_plugin(const std::string& path);
std::unique_ptr<Parts> open_native_plugin(const std::string& path);
Info yaml_info(const std::string& path);
Info native_info(const std::string& path);

}  // namespace paddle::plugin
