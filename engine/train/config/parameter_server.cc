#include "train/config/parameter_server.h"

#include "base/text.h"

namespace paddle::train {

using config::Schema;
using config::Section;
using config::Spec;

namespace {
constexpr int64_t kMaxServers = 1024, kMaxLanes = 1024;
constexpr int kLanesOfServer = 4;
constexpr int64_t kMaxSteps = 1 << 20;

ps::UpdateOptions read_updates(const Section& section, config::Diagnostics& diagnostics) {
  ps::UpdateOptions out;
  if (section.text("mode") == "async") out.mode = ps::Mode::kAsync;
  out.ahead = static_cast<int>(section.integer("ahead"));
  if (section.text("staleness") != "none")
    out.staleness = static_cast<int>(section.integer("staleness"));
  out.merge = static_cast<int>(section.integer("merge"));
  out.order_log = section.boolean("order_log");
  if (out.staleness && *out.staleness < out.merge - 1)
    diagnostics.add(ErrorCode::kConfig,
                    str("parameter_server.staleness: workers send gradients every ", out.merge,
                        " steps (merge); expected at least ", out.merge - 1),
                    section.location("staleness"));
  return out;
}
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
  s.add("mode", Spec::word({"sync", "async"})
                    .fallback("sync")
                    .doc("sync: one update a step, of the gradients of all workers; async: one "
                         "for each worker, when its gradients arrive"));
  s.add("ahead", Spec::integer().at_least(0).at_most(1).fallback("1").doc(
                     "of async: steps whose rows a worker asks for before it sends the "
                     "gradients of the step before them"));
  s.add("staleness", Spec::integer()
                         .at_least(0)
                         .at_most(kMaxSteps)
                         .fallback("none")
                         .or_else(Spec::word({"none"}))
                         .doc("of async: steps by which a worker may be ahead of the slowest; "
                              "none: any number"));
  s.add("merge", Spec::integer().at_least(1).at_most(kMaxSteps).fallback("1").doc(
                     "of async: steps whose gradients a worker adds before it sends them"));
  s.add("order_log",
        Spec::boolean().fallback("true").doc("of async: write the order of messages, with which "
                                             "paddle-train --replay repeats the run"));
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
  out.updates = read_updates(section, diagnostics);
  if (out.lane_count() < out.servers)
    diagnostics.add(ErrorCode::kConfig,
                    str("parameter_server.lanes: ", out.lanes, " lanes are too few for ",
                        out.servers, " servers"),
                    section.location("lanes"));
  return out;
}

}  // namespace paddle::train
