#include "train/job/servers.h"

#include <chrono>
#include <utility>

namespace paddle::train {
namespace {

ps::TableSettings table_settings(const RunConfig& config) {
  ps::TableSettings out;
  for (const char* section : {"tables", "optimizer"})
    if (const config::Node* const node = config.document.find(section))
      out.emplace_back(section, config::dump_yaml(*node));
  out.emplace_back("parameter_server.mode", config.parameter_server.updates.text());
  return out;
}

}  // namespace

TableOpening table_opening(const RunConfig& config) {
  return {.rule = std::make_shared<optim::Optimizer>(config.optimizers.front().options),
          .kind = config.tables,
          .policies = config.table_policies,
          .max_deltas = config.table_deltas,
          .updates = config.parameter_server.updates};
}

ps::ServerOptions server_options(const RunConfig& config, int index, const std::string& output) {
  ps::ServerOptions out;
  out.index = index;
  out.servers = config.parameter_server.servers;
  out.lanes = config.parameter_server.lane_count();
  out.durability = config.parameter_server.durability;
  out.updates = config.parameter_server.updates;
  out.replay = config.parameter_server.replay;
  out.watched = config.parameter_server.watched;
  out.settings = table_settings(config);
  out.output = output;
  out.open = [opening = table_opening(config)](program::TableSpec declared, uint64_t seed) {
    return opening.open(std::move(declared), seed);
  };
  return out;
}

ServersOfRun servers_in_process(const RunConfig& config, int workers, const std::string& output) {
  const auto servers =
      std::make_shared<ps::LocalServers>(server_options(config, 0, output), workers);
  return {.servers = config.parameter_server.servers,
          .link = [servers](int worker) { return servers->link(worker); }};
}

std::unique_ptr<ps::Client> connect_to_servers(const ServersOfRun& servers, const RunConfig& config,
                                               comm::Communicator& communicator,
                                               std::function<void(const std::string&)> notice) {
  // Later runs have higher numbers.
  auto session = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                       std::chrono::nanoseconds(1));
  communicator.broadcast(std::as_writable_bytes(std::span(&session, 1)));
  ps::ClientOptions options;
  options.place = {.worker = communicator.rank(),
                   .workers = communicator.size(),
                   .session = session,
                   .servers = config.parameter_server.servers,
                   .lanes = config.parameter_server.lane_count()};
  options.settings = table_settings(config);
  options.timeout = servers.timeout;
  options.slow_after = servers.slow_after;
  options.notice = std::move(notice);
  return std::make_unique<ps::Client>(std::move(options), servers.link(communicator.rank()));
}

}  // namespace paddle::train
