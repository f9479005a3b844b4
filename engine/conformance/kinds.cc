#include "conformance/kinds.h"

#include "conformance/tables.h"
#include "conformance/transports.h"

namespace paddle::conformance {

std::vector<KindCheck> kind_checks(const Kinds& kinds, const Extent& extent) {
  std::vector<KindCheck> out;
  for (const std::string& name : kinds.transports)
    for (const std::string& check : transport_checks(extent))
      if (!name.empty())
        out.push_back({"transports", name + "/" + check,
                       [=] { return check_transport(name, check, extent); }});
  for (const std::string& name : kinds.tables)
    for (const std::string& check : table_checks(extent))
      if (!name.empty())
        out.push_back({"tables", name + "/" + check, [=] {
                         const auto kind = program::table_kinds().find(name);
                         return kind ? check_table(*kind, check, extent) : "it is not registered";
                       }});
  return out;
}

}  // namespace paddle::conformance
