#pragma once
// The servers of tables that a launcher starts, next to the ranks. One that is killed is started
// again, and continues from its log.

#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/launcher.h"
#include "launch/process.h"

namespace paddle::launch {

class ServerGroup {
 public:
  /// Starts them: the command of the ranks, which the environment tells what it is.
  ServerGroup(const LaunchOptions& options, std::string address, std::string token);
  ServerGroup(const ServerGroup&) = delete;
  ServerGroup& operator=(const ServerGroup&) = delete;
  /// Ends them.
  ~ServerGroup();

  /// Passes on what they write, and starts those again that were killed. The failure of one that
  /// has ended by itself.
  std::optional<LaunchResult> advance();

 private:
  using Clock = std::chrono::steady_clock;
  struct Server {
    std::unique_ptr<Process> process;
    std::ofstream log;
    std::string errors;  ///< the end of its standard error
    Clock::time_point started = {};
    int short_lives = 0;  ///< one after the other
    bool reported_stopped = false;
  };
  /// The number in the run of this machine's i-th server.
  int name(size_t i) const { return options_.servers_before + static_cast<int>(i); }
  void start(size_t i);
  bool take_output(Server& server);

  const LaunchOptions& options_;
  std::string address_, token_;
  std::vector<Server> servers_;
};

}  // namespace paddle::launch
