#include "conformance/kinds.h"

#include <algorithm>

#include "comm/transport_kind.h"
#include "config/kind_keys.h"
#include "conformance/collectives.h"
#include "conformance/compilers.h"
#include "conformance/devices.h"
#include "conformance/every_operation.h"
#include "conformance/readers.h"
#include "conformance/tables.h"
#include "conformance/train_parts.h"
#include "conformance/transports.h"

namespace paddle::conformance {

namespace {

/// The options of a kind from those of `given` that it declares; nothing, and the reason for which
/// it is left out, if it needs more.
std::optional<KindOptions> options_of(const std::vector<KindKey>& keys,
                                      const std::vector<std::string>& given, std::string& why) {
  config::Node map = config::parse_document("{}", "--key");
  for (const std::string& text : given) {
    const auto [name, value] = key_and_value(text);
    if (std::ranges::find(keys, name, &KindKey::name) != keys.end())
      map.set(name, config::make_scalar(value, map.source));
  }
  for (const KindKey& key : keys)
    if (key.required && !map.find(key.name)) {
      why = str("it needs the key '", key.name, "': --key ", key.name, "=VALUE");
      return std::nullopt;
    }
  config::Diagnostics diagnostics;
  config::schema_of(keys).resolve(map, "--key", diagnostics);
  diagnostics.raise();
  return config::options_of(keys, config::Section(map));
}

}  // namespace

std::vector<KindCheck> kind_checks(const Kinds& kinds, const Extent& extent,
                                   const std::vector<std::string>& keys) {
  std::vector<KindCheck> out;
  for (const std::string& name : kinds.devices)
    for (const DeviceCheck& check : device_checks())
      out.push_back({check.group, str(name, "/", check.name),
                     [=] { return check_device(name, check, extent); }});
  for (const std::string& name : kinds.devices)
    for (size_t part = 0; part < kOperationParts; ++part) {
      out.push_back({"operators", str(name, "/every/", part),
                     [=] { return check_every_operation(name, part); }});
      // Finite differences of all operations take minutes.
      if (extent.quick) continue;
      out.push_back({"gradients", str(name, "/every/", part),
                     [=] { return check_every_gradient(name, part); }});
    }
  for (const std::string& name : kinds.devices)
    for (const std::string& check : collective_checks(extent))
      out.push_back({"collectives", str(name, "/", check),
                     [=] { return check_collectives_on(name, check, extent); }});
  // The plug-in is loaded in the processes of the checks only, so its kinds are found there.
  for (const std::string& name : kinds.transports)
    for (const std::string& check : transport_checks(extent))
      out.push_back({"transports", str(name, "/", check), [=]() -> std::string {
                       const auto kind = comm::transport_kinds().find(name);
                       if (!kind) return "it is not registered";
                       std::string why;
                       const auto options = options_of(kind->keys, keys, why);
                       return options ? check_transport({name, *options}, check, extent) : why;
                     }});
  for (const std::string& name : kinds.tables)
    for (const std::string& check : table_checks(extent))
      out.push_back({"tables", str(name, "/", check), [=]() -> std::string {
                       const auto kind = program::table_kinds().find(name);
                       if (!kind) return "it is not registered";
                       std::string why;
                       const auto options = options_of(kind->keys, keys, why);
                       return options ? check_table(*kind, *options, check, extent) : why;
                     }});
  for (const std::string& name : kinds.compilers)
    for (const std::string& check : compiler_checks())
      out.push_back({"compilers", str(name, "/", check),
                     [=] { return check_compiler(name, check, extent); }});
  for (const std::string& name : kinds.optimizers)
    for (const std::string& check : optimizer_checks())
      out.push_back({"optimizers", str(name, "/", check),
                     [=] { return check_optimizer(name, keys, check, extent); }});
  for (const std::string& name : kinds.schedules)
    out.push_back({"lr_schedule", name, [=] { return check_schedule(name, keys); }});
  for (const std::string& name : kinds.metrics)
    out.push_back({"metrics", name, [=] { return check_metric(name); }});
  for (const std::string& name : kinds.transforms)
    out.push_back({"transforms", name, [=] { return check_transform(name, keys); }});
  for (const std::string& name : kinds.sharding)
    out.push_back({"traits", name + "/sharding", [=] { return check_sharding(get_op(name)); }});
  for (const std::string& name : kinds.readers)
    for (const std::string& check : reader_checks())
      if (keys.empty())
        out.push_back({"readers", str(name, "/", check), nullptr,
                       "it needs data: name it with --key, such as --key path=FILE"});
      else
        out.push_back({"readers", str(name, "/", check),
                       [=] { return check_reader(name, keys, check, extent); }});
  return out;
}

}  // namespace paddle::conformance
