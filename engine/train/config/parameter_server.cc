#include "train/config/parameter_server.h"

#include "base/text.h"

namespace paddle::train {

using config::Schema;
using config::Section;
using config::Spec;

namespace {
constexpr int64_t kMaxServers = 1024, kMaxLanes = 1024;
constexpr int kLanesOfServer = 4;
}  // namespace

int ParameterServer::lane_count() const {
  return lanes > 0 ? lanes : std::min<int>(kLanesOfServer * servers, kMaxLanes);
}

Schema parameter_server_schema() {
  Schema s;
  s.add("placement", Spec::word({"workers", "servers"})
                         .fallback("workers")
                         .doc("the processes with the rows of tables: the ranks, or servers"));
  s.add("servers",
        Spec::integer()
            .at_least(1)
            .at_most(kMaxServers)
            .fallback("1")
            .doc("number of servers; --servers of paddle-launch and paddle-train replaces "
                 "it"));
  s.add("lanes", Spec::integer()
                     .at_least(1)
                     .at_most(kMaxLanes)
                     .fallback("auto")
                     .or_else(Spec::word({"auto"}))
                     .doc("parts of the tables that are updated one after the other, at least "
                          "one a server; auto: four a server"));
  s.add("durability",
        Spec::word({"none", "process", "machine"})
            .fallback("process")
            .doc("events that a server logs before it answers: none, those that survive its "
                 "process, or those that survive its machine (synced to the disk)"));
  return s;
}

ParameterServer read_parameter_server(const Section& section, config::Diagnostics& diagnostics) {
  ParameterServer out;
  out.on_servers = section.text("placement") == "servers";
  out.servers = static_cast<int>(section.integer("servers"));
  if (section.text("lanes") != "auto") out.lanes = static_cast<int>(section.integer("lanes"));
  const std::string durability = section.text("durability");
  out.durability = durability == "none"      ? ps::Durability::kNone
                   : durability == "machine" ? ps::Durability::kMachine
                                             : ps::Durability::kProcess;
  if (out.lane_count() < out.servers)
    diagnostics.add(ErrorCode::kConfig,
                    str("parameter_server.lanes: ", out.lanes, " lanes are too few for ",
                        out.servers, " servers"),
                    section.location("lanes"));
  return out;
}

}  // namespace paddle::train
