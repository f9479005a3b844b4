#pragma once
// Servers of tables in the tools: a process that is one, and how the workers of a run reach them.

#include <string>
#include <vector>

#include "ps/environment.h"
#include "train/job/servers.h"
#include "train/job/trainer.h"

namespace paddle::cli {

class App;

struct ServeOptions {
  std::string listen = "127.0.0.1:0";
  /// Whether it stays when the workers have ended.
  bool stays = false;
};

/// Is a server until a signal, or the workers, end it. `output`: the folder of the run.
int serve_tables(train::RunConfig config, const std::string& output, const ps::ServersPlace& place,
                 const ServeOptions& options);

/// Lets the config keep rows on this number of servers. kUsage if there are fewer lanes.
void use_servers(train::RunConfig& config, int servers);

/// A run that is repeated.
struct ReplayOfRun {
  std::string run = {};
  int64_t from = 0;  ///< the step of a checkpoint of it; 0: its beginning
  bool checks = false;
  std::vector<std::string> skipped = {};  ///< WORKER:STEP
};
void add_replay_options(App& app, ReplayOfRun& replay);
/// TABLE:KEY, a row whose updates the servers of the run write down. kUsage for other text.
ps::WatchedRow parse_watched(const std::string& text);
/// kUsage where these options and others exclude each other.
void check_replay(const ReplayOfRun& replay, bool resumes, const train::TrainOptions& options);
/// Lets a run of `workers` repeat that one up to `until` (0: its end), as its config says. kUsage
/// if it cannot be repeated.
void use_replay(train::RunConfig& config, train::TrainOptions& options, const ReplayOfRun& replay,
                int workers);

/// How workers reach the servers that the environment states.
train::ServersOfRun servers_of(const train::RunConfig& config, const ps::ServersPlace& place);

}  // namespace paddle::cli
