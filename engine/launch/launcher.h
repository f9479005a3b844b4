#pragma once
// Starts the ranks of a run as processes, on this machine or together with the launchers of others,
// lets them find each other, watches them, starts them again where a rank was lost, and ends them
// together: none outlives its launcher.
//
// The launcher of node 0 decides. It listens at the rendezvous; those of the other nodes say how
// many ranks they start, report failures, and start and end their ranks as it says.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace paddle::launch {

/// A machine of a list of hosts, with the number of ranks that it runs.
struct Host {
  std::string name;
  int ranks = 1;
};

/// "a:8,b:8": hosts with their ranks, 1 without a number. kUsage for anything else.
std::vector<Host> parse_hosts(const std::string& text);

struct LaunchOptions {
  int ranks = 1;                     ///< of this machine
  std::vector<std::string> command;  ///< program and arguments, the same for each rank
  std::string logs;                  ///< folder for rank-N.log; "": none
  int nodes = 1, node = 0;           ///< launchers of the run, and which of them this is
  std::string rendezvous;            ///< host:port of node 0; may be "" where there is one node
  /// Machines on which this launcher, as node 0, starts others with `ssh`; `nodes` and `ranks`
  /// follow from it.
  std::vector<Host> hosts;
  std::vector<std::string> ssh = {"ssh", "-o", "BatchMode=yes"};
  int servers = 0;  ///< of tables, on this machine
  /// Set by the launcher: those of all machines, and those of the machines before this one.
  int all_servers = 0, servers_before = 0;
  int restarts = 0;  ///< how often the run is started again after it has lost a rank
  /// A rank that has been stopped (SIGSTOP), or silent, longer than this counts as lost.
  std::chrono::milliseconds dead_after = std::chrono::seconds(10);
  /// The longest wait of a rank for another one.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  /// Time for all launchers and ranks to come.
  std::chrono::milliseconds join_timeout = std::chrono::minutes(2);
  /// Time for the other ranks to end by themselves after one has failed.
  std::chrono::milliseconds grace = std::chrono::seconds(5);
  /// Called with the output of rank 0, standard output or standard error.
  std::function<void(const std::string& bytes, bool is_error)> output;
  /// Called with lines about the run: a rank that is late, a restart.
  std::function<void(const std::string& line)> notice;
};

struct LaunchResult {
  int status = 0;  ///< exit status of the run
  /// The first failure, in one line that names the rank; "" after success.
  std::string error;
};

/// Runs the command on all ranks. A rank that fails by itself decides the status, with its own
/// message; kPeer (7) if a rank was killed, stopped or silent and no restart was left. SIGINT and
/// SIGTERM go to all ranks once; a second one kills them.
LaunchResult launch(const LaunchOptions& options);

}  // namespace paddle::launch
