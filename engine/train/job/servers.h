#pragma once
// The servers of a run, as workers reach them, and as a process that is one makes them.

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "ps/client.h"
#include "train/config/run_config.h"
#include "train/tables/table_opening.h"

namespace paddle::train {

/// How the workers of a run reach its servers.
struct ServersOfRun {
  int servers = 0;
  std::function<std::unique_ptr<ps::Link>(int worker)> link = {};
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  std::chrono::milliseconds slow_after = std::chrono::seconds(10);
};

/// Servers as a part of this process, as the config says. `output`: the folder of the run.
ServersOfRun servers_in_process(const RunConfig& config, int workers, const std::string& output);

/// Connects this worker. All ranks call it together.
std::unique_ptr<ps::Client> connect_to_servers(const ServersOfRun& servers, const RunConfig& config,
                                               comm::Communicator& communicator,
                                               std::function<void(const std::string&)> notice);

/// How the tables of a run are made, and what its config says of them.
TableOpening table_opening(const RunConfig& config);
/// Server `index` of the run whose folder is `output`.
ps::ServerOptions server_options(const RunConfig& config, int index, const std::string& output);

}  // namespace paddle::train
