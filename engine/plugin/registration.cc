#include "plugin/registration.h"

#include <algorithm>

#include "autograd/precision_override.h"
#include "base/version.h"
#include "ops/core/backend.h"
#include "paddle/plugin/device.h"
#include "plugin/added_kinds.h"

namespace paddle::plugin {

bool is_word(std::string_view name) {
  return !name.empty() && name[0] >= 'a' && name[0] <= 'z' && name.size() < 64 &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

void check_name(const std::string& path, const std::string& name, const std::string& version) {
  if (!is_word(name))
    fail(ErrorCode::kDevice, path,
         ": the name of a plug-in has lower-case letters, digits and '_', found '", name, "'");
  if (!is_version(version))
    fail(ErrorCode::kDevice, path, ": expected a version such as 1.0.0, found '", version, "'");
  constexpr std::string_view kReserved[] = {"paddle", "plugin", "cf", "comm", "model"};
  bool reserved = std::ranges::find(kReserved, name) != std::end(kReserved);
  for (const Op* op : all_ops())
    reserved = reserved ||
               (!op->def->provider && (op->name() == name || op->name().starts_with(name + ".")));
  if (reserved) fail(ErrorCode::kDevice, path, ": the name '", name, "' is reserved");
}

void read_sharding_rules(const config::Node& map, Parts& parts) {
  std::vector<std::string> names = parts.definitions.names();
  for (const config::Entry& entry : map.entries) {
    const std::string& name = entry.key.text;
    if (!find_op(name) && std::ranges::find(names, name) == names.end()) {
      for (const std::string& each : op_names()) names.push_back(each);
      throw Error(ErrorCode::kConfig,
                  str("sharding: unknown operation '", name, "'", did_you_mean(name, names)),
                  entry.key.location());
    }
    parts.sharding.push_back({name, read_sharding_rule(entry.value)});
  }
}

void check_not_loaded(const std::string& path, const std::string& name) {
  if (const Plugin* const same = find(name))
    fail(ErrorCode::kDevice, path, ": the plug-in ", name, " is loaded already, from ", same->path);
}

namespace {

/// Registers the sections of a file NAME.plugin.yaml besides operations and rewrite rules.
void register_text_kinds(const Parts& parts) {
  const SourceLocation where{parts.plugin.path};
  autograd::PrecisionOverrides precision;
  for (const PrecisionRule& rule : parts.precision) {
    const Op* const op = find_op(rule.operation);
    if (!op)
      throw Error(ErrorCode::kConfig,
                  str("precision: unknown operation '", rule.operation, "'",
                      did_you_mean(rule.operation, op_names())),
                  rule.place);
    precision.emplace_back(op, rule.is_low ? PrecisionClass::kLow : PrecisionClass::kFull);
  }
  autograd::override_precision(precision);
  optim::optimizer_kinds().add(parts.optimizers, where);
  optim::schedule_kinds().add(parts.schedules, where);
  metrics::metric_registry().add(parts.metrics, where);
  data::transform_registry().add(parts.transforms, where);
}

}  // namespace

void register_parts(Parts& parts) {
  for (const paddle_device_api* device : parts.devices) {
    const int16_t kind = register_device_kind(*device);
    register_backend({.name = device_api({kind, 0}).name, .device_kind = kind});
  }
  std::vector<AddedKernel> kernels;
  for (const KernelContext& kernel : parts.kernels)
    kernels.push_back({kernel.operation, kernel.backend, prepare_plugin_kernel, &kernel});
  if (!parts.definitions.ops().empty())
    register_operations(parts.definitions.ops(), parts.definitions.aliases());
  if (!kernels.empty()) add_kernels(kernels);
  register_kinds(parts);
  register_text_kinds(parts);
  for (const auto* rules : {&parts.definitions.sharding(), &std::as_const(parts.sharding)})
    for (const ShardingRule& each : *rules) partition::register_rule(each.operation, each.rule);
  std::vector<compiler::AddedPass> passes;
  for (const PassContext& pass : parts.passes) passes.push_back(added_pass(pass));
  compiler::added_passes().add(std::move(passes), {parts.plugin.path});
  if (parts.rules.empty()) return;
  std::vector<passes::Rule> rules =
      passes::parse_rules(parts.rules, parts.rules_file, parts.rules_line);
  for (passes::Rule& rule : rules) {
    rule.name = parts.plugin.provider.name + "." + rule.name;
    parts.plugin.rules.push_back(rule.name);
  }
  passes::added_rules().add({{parts.plugin.provider.name, std::move(rules)}}, {parts.plugin.path});
}

}  // namespace paddle::plugin
