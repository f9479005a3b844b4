#include "conformance/kinds.h"

#include "conformance/compilers.h"
#include "conformance/devices.h"
#include "conformance/readers.h"
#include "conformance/tables.h"
#include "conformance/transports.h"

namespace paddle::conformance {

std::vector<KindCheck> kind_checks(const Kinds& kinds, const Extent& extent,
                                   const std::vector<std::string>& keys) {
  std::vector<KindCheck> out;
  for (const std::string& name : kinds.devices)
    for (const DeviceCheck& check : device_checks())
      out.push_back({check.group, str(name, "/", check.name),
                     [=] { return check_device(name, check, extent); }});
  for (const std::string& name : kinds.transports)
    for (const std::string& check : transport_checks(extent))
      out.push_back({"transports", str(name, "/", check),
                     [=] { return check_transport(name, check, extent); }});
  for (const std::string& name : kinds.tables)
    for (const std::string& check : table_checks(extent))
      out.push_back({"tables", str(name, "/", check), [=] {
                       const auto kind = program::table_kinds().find(name);
                       return kind ? check_table(*kind, check, extent) : "it is not registered";
                     }});
  for (const std::string& name : kinds.compilers)
    for (const std::string& check : compiler_checks())
      out.push_back({"compilers", str(name, "/", check),
                     [=] { return check_compiler(name, check, extent); }});
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
