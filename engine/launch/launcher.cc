#include "launch/launcher.h"

#include <poll.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "comm/tcp_transport.h"
#include "launch/process.h"

namespace paddle::launch {
namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t signals = 0, last_signal = 0;

void on_signal(int number) {
  last_signal = number;
  signals = signals + 1;
}

/// Takes SIGINT and SIGTERM for a scope.
class SignalScope {
 public:
  SignalScope() {
    signals = 0;
    last_signal = 0;
    struct sigaction action {};
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &interrupt_);
    sigaction(SIGTERM, &action, &terminate_);
  }
  ~SignalScope() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
  }
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

 private:
  struct sigaction interrupt_ {
  }, terminate_{};
};

/// A rank with what it has written.
struct Rank {
  std::unique_ptr<Process> process;
  std::ofstream log;
  std::string errors;  ///< the end of its standard error
  bool ended = false;  ///< and was looked at
};

constexpr size_t kKeptErrors = 16384;
constexpr int kLost = static_cast<int>(ErrorCode::kPeer);

/// The last line that a program of ours prints about an error, or the last one at all.
std::string last_error_line(const std::string& errors) {
  std::string last, found;
  for (const std::string& line : split(errors, '\n')) {
    if (trim(line).empty()) continue;
    last = line;
    if (line.starts_with("error: ") || line.starts_with("internal error: ")) found = line;
  }
  return found.empty() ? last : found;
}

class Run {
 public:
  explicit Run(const LaunchOptions& options) : options_(options), rendezvous_(options.ranks) {}

  LaunchResult run() {
    start();
    while (!all_ended()) {
      wait();
      if (!rendezvous_.complete()) rendezvous_.advance();
      for (size_t r = 0; r < ranks_.size(); ++r) look_at(r);
      pass_signals_on();
      end_the_rest();
    }
    // Rank 0 has printed it: an error that all ranks met alike.
    if (!failure_line_.empty() && last_error_line(ranks_[0].errors) == failure_line_)
      result_.error.clear();
    return std::move(result_);
  }

 private:
  void start() {
    if (!options_.logs.empty()) ensure_directory(options_.logs);
    ranks_.resize(static_cast<size_t>(options_.ranks));
    for (int r = 0; r < options_.ranks; ++r) {
      Rank& rank = ranks_[static_cast<size_t>(r)];
      if (!options_.logs.empty()) {
        const std::string path =
            (std::filesystem::path(options_.logs) / str("rank-", r, ".log")).string();
        rank.log.open(path, std::ios::trunc);
        if (!rank.log) fail(ErrorCode::kDevice, "cannot write '", path, "'");
      }
      rank.process = std::make_unique<Process>(
          options_.command, std::vector<std::pair<std::string, std::string>>{
                                {"PADDLE_RANK", std::to_string(r)},
                                {"PADDLE_WORLD_SIZE", std::to_string(options_.ranks)},
                                {"PADDLE_RENDEZVOUS", rendezvous_.address()},
                                {"PADDLE_RENDEZVOUS_TOKEN", rendezvous_.token()}});
    }
  }

  bool all_ended() const {
    for (const Rank& rank : ranks_)
      if (!rank.ended) return false;
    return true;
  }

  /// For output, newcomers or signals, at most a moment.
  void wait() {
    std::vector<pollfd> waits;
    for (const Rank& rank : ranks_)
      for (const int pipe : {rank.process->output(), rank.process->error()})
        if (pipe >= 0) waits.push_back({pipe, POLLIN, 0});
    for (const int descriptor : rendezvous_.descriptors()) waits.push_back({descriptor, POLLIN, 0});
    constexpr int kMoment = 50;
    ::poll(waits.data(), waits.size(), kMoment);
  }

  void look_at(size_t r) {
    Rank& rank = ranks_[r];
    if (rank.ended) return;
    rank.process->update();
    // All output of an ended process is in the pipes by now.
    const bool over = rank.process->status().has_value();
    while (take_output(r) && over) {
    }
    if (over) {
      rank.ended = true;
      ended(r);
    } else if (const auto since = rank.process->stopped_since();
               since && Clock::now() - *since > options_.dead_after && !failed_at_) {
      note_failure(
          kLost, str("rank ", r, " has been stopped for ",
                     std::chrono::duration_cast<std::chrono::seconds>(options_.dead_after).count(),
                     " seconds; the run is ended"));
      rank.process->signal(SIGKILL);  // so that the others notice
    }
  }

  /// Passes on what a rank has written; false if there was nothing.
  bool take_output(size_t r) {
    Rank& rank = ranks_[r];
    const std::string out = rank.process->read_output(), err = rank.process->read_error();
    if (rank.log.is_open()) {
      rank.log << out << err;
      rank.log.flush();
    }
    rank.errors += err;
    if (rank.errors.size() > kKeptErrors) rank.errors.erase(0, rank.errors.size() - kKeptErrors);
    if (r == 0 && options_.output) {
      if (!out.empty()) options_.output(out, false);
      if (!err.empty()) options_.output(err, true);
    }
    return !out.empty() || !err.empty();
  }

  void ended(size_t r) {
    const Process& process = *ranks_[r].process;
    const int status = *process.status();
    if (status == 0) return;
    if (process.killed_by() != 0) {
      if (!ending_)
        note_failure(kLost, str("rank ", r, " was killed by signal ", process.killed_by(), " (",
                                strsignal(process.killed_by()), ")"));
      return;
    }
    const std::string line = last_error_line(ranks_[r].errors);
    note_failure(
        status,
        line.empty() ? str("rank ", r, " ended with status ", status) : str("rank ", r, ": ", line),
        line);
  }

  /// The first failure that is not about a lost peer explains the others.
  void note_failure(int status, const std::string& message, const std::string& line = {}) {
    if (!failed_at_) failed_at_ = Clock::now();
    if (result_.status != 0 && (result_.status != kLost || status == kLost || explained_)) return;
    explained_ = status != kLost || message.find(" was killed by ") != std::string::npos ||
                 message.find(" has been stopped ") != std::string::npos;
    result_.status = status;
    result_.error = status > 128 ? "" : message;  // ranks that a signal stopped say so themselves
    failure_line_ = line;
  }

  void pass_signals_on() {
    if (signals == passed_) return;
    const bool again = passed_ > 0;
    passed_ = signals;
    for (const Rank& rank : ranks_) rank.process->signal(again ? SIGKILL : last_signal);
    if (again) {
      ending_ = true;
      if (result_.status == 0) result_.status = 128 + last_signal;
    }
  }

  void end_the_rest() {
    if (!failed_at_) return;
    const auto since = Clock::now() - *failed_at_;
    const auto send = [&](int number) {
      ending_ = true;
      for (const Rank& rank : ranks_) rank.process->signal(number);
    };
    if (since > 2 * options_.grace)
      send(SIGKILL);
    else if (since > options_.grace && !ending_)
      send(SIGTERM);
  }

  const LaunchOptions& options_;
  SignalScope signal_scope_;
  comm::Rendezvous rendezvous_;
  std::vector<Rank> ranks_;
  LaunchResult result_;
  std::string failure_line_;  ///< what the failed rank printed
  std::optional<Clock::time_point> failed_at_;
  bool explained_ = false;  ///< the error is a cause, not a consequence
  bool ending_ = false;     ///< ranks are being killed: how they end says nothing
  int passed_ = 0;          ///< signals that the ranks have got
};

}  // namespace

LaunchResult launch(const LaunchOptions& options) { return Run(options).run(); }

}  // namespace paddle::launch
