#include "train/config/parameter_server.h"

#include <chrono>
#include <cmath>
#include <cstdlib>

#include "base/duration.h"
#include "base/text.h"
#include "train/config/memory_key.h"

namespace paddle::train {

using config::Schema;
using config::Section;
using config::Spec;

namespace {
constexpr int64_t kMaxServers = 1024, kMaxLanes = 1024;
constexpr int kLanesOfServer = 4;
constexpr int64_t kMaxSteps = 1 << 20;

void read_cache(const Section& cache, ps::UpdateOptions& out, config::Diagnostics& diagnostics) {
  out.cache_refresh = static_cast<int>(cache.integer("refresh"));
  constexpr uint64_t kMax = uint64_t{1} << 44;
  out.cache_bytes =
      read_memory(cache, "parameter_server.cache", "memory", kMax, "256 MiB", diagnostics)
          .value_or(out.cache_bytes);
}

ps::UpdateOptions read_updates(const Section& section, config::Diagnostics& diagnostics) {
  ps::UpdateOptions out;
  const std::string& mode = section.text("mode");
  out.mode = mode == "async" ? ps::Mode::kAsync : mode == "geo" ? ps::Mode::kGeo : ps::Mode::kSync;
  out.every = static_cast<int>(section.section("geo").integer("every"));
  out.combines_by_mean = section.section("geo").text("combine") == "mean";
  out.ahead = static_cast<int>(section.integer("ahead"));
  if (section.text("staleness") != "none")
    out.staleness = static_cast<int>(section.integer("staleness"));
  out.merge = static_cast<int>(section.integer("merge"));
  if (section.has("cache")) read_cache(section.section("cache"), out, diagnostics);
  if (section.at("order_log").is_map()) {
    const Section order = section.section("order_log");
    constexpr double kMaxSeconds = 1e9;
    if (order.has("keep"))
      out.order_keep = std::chrono::seconds(
          static_cast<int64_t>(std::ceil(std::min(order.seconds("keep"), kMaxSeconds))));
  } else {
    out.order_log = section.boolean("order_log");
  }
  const std::pair<const char*, bool> of_async[] = {{"staleness", out.staleness.has_value()},
                                                   {"merge", out.merge > 1},
                                                   {"cache", out.cache_bytes > 0}};
  for (const auto& [key, is_given] : of_async)
    if (out.is_geo() && is_given)
      diagnostics.add(ErrorCode::kConfig,
                      str("parameter_server.", key, " is for mode: async, not geo"),
                      section.location(key));
  if (out.staleness && *out.staleness < out.merge - 1)
    diagnostics.add(ErrorCode::kConfig,
                    str("parameter_server.staleness: workers send gradients every ", out.merge,
                        " steps (merge); expected at least ", out.merge - 1),
                    section.location("staleness"));
  return out;
}

std::optional<TlsFiles> read_tls(const Section& section) {
  if (!section.has("tls")) return std::nullopt;
  const Section tls = section.section("tls");
  return TlsFiles{tls.text("ca"), tls.text("certificate"), tls.text("key")};
}

/// "500", "2 epochs", "1 day", or a length of time such as "10 min".
PublishInterval read_publish_interval(const Section& section, const char* key) {
  PublishInterval out;
  const std::string& text = section.text(key);
  if (text == "never") return out;
  const size_t digits = text.find_first_not_of("0123456789");
  const std::string_view unit =
      digits == std::string::npos ? "" : trim(std::string_view(text).substr(digits));
  if (unit == "day" || unit == "days") {
    out.days = std::atoll(text.c_str());
  } else if (unit.empty() || unit.starts_with("step") || unit.starts_with("epoch")) {
    out.steps = read_interval(section, "parameter_server.publish", key);
  } else if (const auto seconds = parse_duration(text)) {
    out.seconds = *seconds;
  }
  if (!out.is_set())
    throw Error(ErrorCode::kConfig,
                str("parameter_server.publish.", key,
                    ": expected 'N', 'N epochs', 'N days', a length of time or 'never', found '",
                    text, "'"),
                section.location(key));
  return out;
}

Publishing read_publishing(const Section& section) {
  Publishing out;
  out.to = section.text("to");
  out.base = read_publish_interval(section, "base");
  out.delta = read_publish_interval(section, "delta");
  if (section.has("base_score")) out.rules.base_score = section.real("base_score");
  if (section.has("delta_score")) out.rules.delta_score = section.real("delta_score");
  if (section.has("delta_days")) out.rules.delta_days = section.integer("delta_days");
  out.rules.dtype = *parse_dtype(section.text("dtype"));
  out.rules.keep = section.integer("keep");
  return out;
}

Schema publish_schema() {
  Schema s;
  s.add("to",
        Spec::text().required().doc("folder of the versions; CURRENT in it names the newest one"));
  s.add("base", Spec::text().fallback("never").doc(
                    "how often all rows are published: N updates, N epochs, N days of the tables, "
                    "a length of time, or never (but for the first version)"));
  s.add("delta",
        Spec::text().fallback("never").doc("how often the changed rows are, in the same way"));
  s.add("base_score", Spec::real().doc("least score of the rows of a base; default: all rows"));
  s.add("delta_score",
        Spec::real().doc("least score of the rows of a delta; default: all changed rows"));
  s.add("delta_days",
        Spec::integer().at_least(0).doc("days since the last use of the rows of a delta, at most"));
  s.add("dtype", Spec::word({"float32", "float16", "bfloat16", "int8"})
                     .fallback("float32")
                     .doc("type of the published rows; int8 has one scale a row"));
  s.add("keep", Spec::integer().at_least(1).fallback("16").doc("versions that are kept"));
  return s;
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
  s.add("mode", Spec::word({"sync", "async", "geo"})
                    .fallback("sync")
                    .doc("sync: one update a step, of the gradients of all workers; async: one "
                         "for each worker, when its gradients arrive; geo: workers update copies "
                         "of the rows, and send their changes from time to time"));
  s.add("ahead",
        Spec::integer()
            .at_least(0)
            .at_most(ps::kMaxAhead)
            .fallback("1")
            .doc("of async and geo: steps whose rows a worker asks for before it sends the "
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
  Schema geo;
  geo.add("every", Spec::integer().at_least(1).at_most(kMaxSteps).fallback("400").doc(
                       "steps after which a worker sends the changes of its rows"));
  geo.add("combine", Spec::word({"mean", "sum"})
                         .fallback("mean")
                         .doc("mean: changes are divided by the number of workers"));
  s.add("geo", Spec::map(geo).doc("of the mode geo"));
  Schema cache;
  cache.add("memory", Spec::text().fallback("256 MiB").doc("of a worker, for rows"));
  cache.add("refresh", Spec::integer().at_least(2).at_most(kMaxSteps).fallback("16").doc(
                           "steps of a worker for which it uses a row that it has got"));
  s.add("cache", Spec::map(cache).optional().doc(
                     "of async: rows that a worker uses for several steps; default: none"));
  Schema order;
  order.add("keep", Spec::duration().doc("remove files of the order to which nothing was written "
                                         "for this long; default: keep all"));
  s.add("order_log",
        Spec::boolean()
            .or_else(Spec::map(order))
            .fallback("true")
            .doc("of async and geo: write the order of messages, with which paddle-train "
                 "--replay repeats the run"));
  s.add("durability",
        Spec::word({"none", "process", "machine"})
            .fallback("process")
            .doc("events that a server logs before it answers: none, those that survive its "
                 "process, or those that survive its machine (synced to the disk)"));
  s.add("channel",
        Spec::word({"auto", "sockets", "grpc"})
            .fallback("auto")
            .doc("what carries messages between workers and servers; auto: sockets on one machine, "
                 "gRPC with TLS between machines"));
  Schema tls;
  tls.add("ca", Spec::text().required().doc(
                    "PEM file of the authority that has signed the certificates of the others"));
  tls.add("certificate", Spec::text().required().doc("PEM file of the own certificate"));
  tls.add("key", Spec::text().required().doc("PEM file of its private key"));
  s.add("tls", Spec::map(tls).optional().doc(
                   "certificates for gRPC; default: those that paddle-launch makes for the run"));
  s.add("publish", Spec::map(publish_schema())
                       .optional()
                       .doc("versions of the model for serving, written while it is trained; "
                            "default: none"));
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
  const std::string channel = section.text("channel");
  out.channel = channel == "grpc"      ? ServerChannel::kGrpc
                : channel == "sockets" ? ServerChannel::kSockets
                                       : ServerChannel::kAuto;
  out.tls = read_tls(section);
  if (section.has("publish"))
    diagnostics.guard([&] { out.publishing = read_publishing(section.section("publish")); });
  if (out.lane_count() < out.servers)
    diagnostics.add(ErrorCode::kConfig,
                    str("parameter_server.lanes: ", out.lanes, " lanes are too few for ",
                        out.servers, " servers"),
                    section.location("lanes"));
  return out;
}

}  // namespace paddle::train
