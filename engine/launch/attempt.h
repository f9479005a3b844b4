#pragma once
// One attempt of a run: the ranks of this machine from their start to their end, and what the
// launchers of other machines report meanwhile.

#include <csignal>
#include <fstream>
#include <memory>
#include <optional>

#include "comm/rendezvous.h"
#include "launch/launcher.h"
#include "launch/node_link.h"
#include "launch/process.h"

namespace paddle::launch {

/// Takes SIGINT and SIGTERM for a scope.
class SignalScope {
 public:
  SignalScope();
  ~SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;
  /// Signals that have arrived, and the last one.
  static int count();
  static int last();

 private:
  struct sigaction interrupt_ {
  }, terminate_{};
};

/// The last line that a program of ours prints about an error, or the last one at all.
std::string last_error_line(const std::string& errors);

class Attempt {
 public:
  /// Node 0 has the rendezvous, the others have a link to it. `number`: from 0.
  Attempt(const LaunchOptions& options, comm::Rendezvous* rendezvous, NodeLink* link, int number);
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt();

  /// Starts the ranks of this node, from `first`, of the `world` ranks of the run, and returns when
  /// all ranks of all nodes have ended. `meanwhile` is called repeatedly; a failure that it returns
  /// ends the run.
  LaunchResult run(int first, int world, const std::string& address, const std::string& token,
                   const std::function<std::optional<LaunchResult>()>& meanwhile = {});
  /// Whether a signal asked the run to end.
  bool interrupted() const { return forwarded_signals_ > 0; }
  /// Of a node other than 0: the last line of node 0, "exit STATUS" or "start …"; "" if its
  /// connection is closed.
  const std::string& final_line() const { return final_line_; }
  /// Whether node 0 has lost another launcher.
  bool node_lost() const { return node_lost_; }

 private:
  struct Rank;
  using Clock = std::chrono::steady_clock;
  void start(const std::string& address, const std::string& token);
  /// The number in the run of this node's r-th rank.
  int name(size_t r) const { return first_ + static_cast<int>(r); }
  bool ranks_ended() const;
  bool all_ended() const;
  void wait();
  void watch_run();
  void on_message(const comm::Rendezvous::NodeLine& message);
  void read_node_0();
  void poll_rank(size_t r);
  bool take_output(size_t r);
  void show_errors(Rank& rank, const std::string& bytes);
  void show_unshown_errors(Rank& rank);
  void ended(size_t r);
  void note_failure(int status, const std::string& message, const std::string& line = {});
  void forward_signals();
  void terminate_remaining();

  const LaunchOptions& options_;
  comm::Rendezvous* const rendezvous_;
  NodeLink* const link_;
  const int number_;
  int first_ = 0, world_ = 1;
  std::vector<std::unique_ptr<Rank>> ranks_;
  LaunchResult result_;
  std::string failure_line_;  ///< what the failed rank printed
  std::optional<Clock::time_point> failed_at_;
  comm::SlowWatch slow_;
  bool cause_found_ = false;   ///< the error is a cause, not a consequence
  bool ending_ = false;        ///< ranks are being killed: how they end says nothing
  int forwarded_signals_ = 0;  ///< signals that the ranks have received
  int nodes_running_ = 0;      ///< other launchers whose ranks have not ended
  bool node_lost_ = false, end_sent_ = false, node_0_done_ = false;
  std::string final_line_;
};

}  // namespace paddle::launch
