#include "launch/attempt.h"

#include <poll.h>

#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace paddle::launch {
namespace {

constexpr size_t kKeptErrors = 16384;
constexpr int kLost = static_cast<int>(ErrorCode::kPeer);

volatile std::sig_atomic_t signals_ = 0, last_signal_ = 0;

void on_signal(int number) {
  last_signal_ = number;
  signals_ = signals_ + 1;
}

bool is_error_line(const std::string& line) {
  return line.starts_with("error: ") || line.starts_with("internal error: ");
}

/// Whether a message about a lost rank gives the cause, not only that others wait for it.
bool is_cause(const std::string& message) {
  for (const char* cause : {" was killed by ", " has been stopped ", " sent no heartbeat "})
    if (message.find(cause) != std::string::npos) return true;
  return false;
}

}  // namespace

SignalScope::SignalScope() {
  signals_ = 0;
  last_signal_ = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
}

SignalScope::~SignalScope() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

int SignalScope::count() { return signals_; }
int SignalScope::last() { return last_signal_; }

std::string last_error_line(const std::string& errors) {
  std::string last, found;
  for (const std::string& line : split(errors, '\n')) {
    if (trim(line).empty()) continue;
    last = line;
    if (is_error_line(line)) found = line;
  }
  return found.empty() ? last : found;
}

/// A rank with what it has written.
struct Attempt::Rank {
  std::unique_ptr<Process> process;
  std::ofstream log;
  std::string errors;  ///< the end of its standard error
  bool ended = false;  ///< and was looked at
  // Of rank 0: a line about an error is held back as long as it is the last one, since the launcher
  // may know the cause.
  std::string unshown;
  bool line_begins = true;  ///< what was shown ends with a whole line
};

Attempt::Attempt(const LaunchOptions& options, comm::Rendezvous* rendezvous, NodeLink* link,
                 int number)
    : options_(options), rendezvous_(rendezvous), link_(link), number_(number) {}

Attempt::~Attempt() = default;

/// Starts the ranks `first` to `first + ranks - 1` of `world` and waits for the end of all ranks
/// of all nodes.
LaunchResult Attempt::run(int first, int world, const std::string& address,
                          const std::string& token,
                          const std::function<std::optional<LaunchResult>()>& meanwhile) {
  const SignalScope signals;
  forwarded_signals_ = 0;
  first_ = first;
  world_ = world;
  start(address, token);
  while (!all_ended()) {
    wait();
    if (meanwhile)
      if (const auto failure = meanwhile(); failure && !failed_at_)
        note_failure(failure->status, failure->error);
    if (rendezvous_) watch_run();
    if (link_) read_node_0();
    for (size_t r = 0; r < ranks_.size(); ++r) poll_rank(r);
    if (link_ && !end_sent_ && ranks_ended()) link_->send("ended");
    end_sent_ = ranks_ended();
    forward_signals();
    terminate_remaining();
  }
  if (rendezvous_ && cause_found_ && result_.status == kLost)
    result_.error += rendezvous_->divergence();
  // Rank 0 says it itself: an error that all ranks met alike.
  if (!failure_line_.empty() && first_ == 0 && !ranks_.empty() &&
      last_error_line(ranks_[0]->errors) == failure_line_)
    result_.error.clear();
  if (!ranks_.empty()) show_unshown_errors(*ranks_[0]);
  return std::move(result_);
}

/// Shows what rank 0 has written to its standard error, but for a last line about an error.
void Attempt::show_errors(Rank& rank, const std::string& bytes) {
  rank.unshown += bytes;
  // The beginning of the last line, which may have its end already.
  size_t begin = rank.unshown.size() - (rank.unshown.ends_with('\n') ? 1 : 0);
  while (begin > 0 && rank.unshown[begin - 1] != '\n') --begin;
  const bool is_whole_line = begin > 0 || rank.line_begins;
  if (!is_whole_line || !is_error_line(rank.unshown.substr(begin))) begin = rank.unshown.size();
  if (begin == 0) return;
  rank.line_begins = rank.unshown[begin - 1] == '\n';
  options_.output(rank.unshown.substr(0, begin), true);
  rank.unshown.erase(0, begin);
}

/// The line that was held back, unless it only says that another rank is lost and the launcher says
/// why.
void Attempt::show_unshown_errors(Rank& rank) {
  const bool is_consequence = rank.process->status() == kLost || rank.process->killed_by() != 0;
  if (rank.unshown.empty() || !options_.output) return;
  if (result_.error.empty() || !is_consequence) options_.output(rank.unshown, true);
  rank.unshown.clear();
}

void Attempt::start(const std::string& address, const std::string& token) {
  if (!options_.logs.empty()) ensure_directory(options_.logs);
  constexpr int kMilliseconds = 1000;
  for (size_t r = 0; r < static_cast<size_t>(options_.ranks); ++r) {
    Rank& rank = *ranks_.emplace_back(std::make_unique<Rank>());
    if (!options_.logs.empty()) {
      const std::string path =
          (std::filesystem::path(options_.logs) / str("rank-", name(r), ".log")).string();
      rank.log.open(path, number_ == 0 ? std::ios::trunc : std::ios::app);
      if (!rank.log) fail(ErrorCode::kDevice, "cannot write '", path, "'");
    }
    rank.process = std::make_unique<Process>(
        options_.command,
        std::vector<std::pair<std::string, std::string>>{
            {"PADDLE_RANK", std::to_string(name(r))},
            {"PADDLE_WORLD_SIZE", std::to_string(world_)},
            {"PADDLE_LOCAL_WORLD_SIZE", std::to_string(options_.ranks)},
            {"PADDLE_RENDEZVOUS", address},
            {"PADDLE_RENDEZVOUS_TOKEN", token},
            {"PADDLE_RESTART", std::to_string(number_)},
            {"PADDLE_SERVERS", std::to_string(options_.all_servers)},
            {"PADDLE_NODES", std::to_string(options_.nodes)},
            {"PADDLE_TIMEOUT",
             std::to_string((options_.timeout.count() + kMilliseconds - 1) / kMilliseconds)}});
  }
  if (rendezvous_) nodes_running_ = options_.nodes - 1;
}

bool Attempt::ranks_ended() const {
  for (const auto& rank : ranks_)
    if (!rank->ended) return false;
  return true;
}
bool Attempt::all_ended() const {
  return ranks_ended() && nodes_running_ <= 0 && (!link_ || node_0_done_);
}

/// Node 0: ranks that are silent or late, and what the other launchers report.
void Attempt::watch_run() {
  rendezvous_->advance();
  if (const auto lost = rendezvous_->find_lost(options_.dead_after)) {
    note_failure(kLost, lost->message);
    const int here = lost->rank - first_;
    if (here >= 0 && here < options_.ranks)
      ranks_[static_cast<size_t>(here)]->process->signal(SIGKILL);
  }
  if (const auto delay = rendezvous_->find_delay(options_.dead_after); delay && options_.notice)
    options_.notice(*delay);
  for (const std::string& line : slow_.advance(rendezvous_->record_folder()))
    if (options_.notice) options_.notice(line);
  while (const auto line = rendezvous_->next_node_line()) on_message(*line);
}

void Attempt::on_message(const comm::Rendezvous::NodeLine& message) {
  std::istringstream in(message.line);
  std::string word;
  int status = 0;
  in >> word;
  if (word == "ended") {
    --nodes_running_;
  } else if (word == "failed" && in >> status) {
    std::string reason;
    std::getline(in >> std::ws, reason);
    note_failure(status, reason);
  } else if (message.line.empty()) {
    --nodes_running_;
    node_lost_ = true;
    note_failure(kLost, str("the launcher of node ", message.node, " is gone"));
  }
}

void Attempt::read_node_0() {
  while (const auto line = node_0_done_ ? std::nullopt : link_->next_line()) {
    std::istringstream in(*line);
    std::string word;
    int number = 0;
    in >> word >> number;
    if (word == "end") {
      if (!failed_at_) failed_at_ = Clock::now();
    } else if (word == "signal") {
      on_signal(number);
    } else if (word == "exit" || word == "start") {
      final_line_ = *line;
      node_0_done_ = true;
    } else if (line->empty()) {
      node_0_done_ = true;
      note_failure(kLost, "the launcher of node 0 has exited");
    }
  }
}

/// Waits for output, connections or signals, at most kPollMilliseconds.
void Attempt::wait() {
  std::vector<pollfd> waits;
  for (const auto& rank : ranks_)
    for (const int pipe : {rank->process->output(), rank->process->error()})
      if (pipe >= 0) waits.push_back({pipe, POLLIN, 0});
  if (rendezvous_)
    for (const int descriptor : rendezvous_->descriptors())
      waits.push_back({descriptor, POLLIN, 0});
  if (link_ && !node_0_done_) waits.push_back({link_->descriptor(), POLLIN, 0});
  constexpr int kPollMilliseconds = 50;
  ::poll(waits.data(), waits.size(), kPollMilliseconds);
}

void Attempt::poll_rank(size_t r) {
  Rank& rank = *ranks_[r];
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
    note_failure(kLost, str("rank ", name(r), " has been stopped for ",
                            comm::seconds_text(options_.dead_after), " seconds; the run is ended"));
    rank.process->signal(SIGKILL);  // so that the others notice
  }
}

/// Passes on what a rank has written; false if there was nothing.
bool Attempt::take_output(size_t r) {
  Rank& rank = *ranks_[r];
  const std::string out = rank.process->read_output(), err = rank.process->read_error();
  if (rank.log.is_open()) {
    rank.log << out << err;
    rank.log.flush();
  }
  rank.errors += err;
  if (rank.errors.size() > kKeptErrors) rank.errors.erase(0, rank.errors.size() - kKeptErrors);
  if (name(r) == 0 && options_.output) {
    if (!out.empty()) options_.output(out, false);
    if (!err.empty()) show_errors(rank, err);
  }
  return !out.empty() || !err.empty();
}

void Attempt::ended(size_t r) {
  const Process& process = *ranks_[r]->process;
  const int status = *process.status();
  if (status == 0) return;
  if (process.killed_by() != 0) {
    if (!ending_)
      note_failure(kLost, str("rank ", name(r), " was killed by signal ", process.killed_by(), " (",
                              strsignal(process.killed_by()), ")"));
    return;
  }
  const std::string line = last_error_line(ranks_[r]->errors);
  note_failure(status,
               line.empty() ? str("rank ", name(r), " ended with status ", status)
                            : str("rank ", name(r), ": ", line),
               line);
}

/// The first failure that is not about a lost peer explains the others.
void Attempt::note_failure(int status, const std::string& message, const std::string& line) {
  if (!failed_at_) failed_at_ = Clock::now();
  if (link_) link_->send(str("failed ", status, " ", message));
  if (rendezvous_) rendezvous_->send_to_nodes("end");
  const bool explains = status != kLost || is_cause(message);
  if (result_.status != 0 && (cause_found_ || !explains)) return;
  cause_found_ = explains;
  result_.status = status;
  result_.error = status > 128 ? "" : message;  // ranks that a signal stopped say so themselves
  failure_line_ = line;
}

void Attempt::forward_signals() {
  if (SignalScope::count() == forwarded_signals_) return;
  const bool again = forwarded_signals_ > 0;
  forwarded_signals_ = SignalScope::count();
  for (const auto& rank : ranks_) rank->process->signal(again ? SIGKILL : SignalScope::last());
  if (rendezvous_) rendezvous_->send_to_nodes(str("signal ", SignalScope::last()));
  if (again) {
    ending_ = true;
    if (result_.status == 0) result_.status = 128 + SignalScope::last();
  }
}

void Attempt::terminate_remaining() {
  if (!failed_at_) return;
  const auto since = Clock::now() - *failed_at_;
  const auto send = [&](int number) {
    ending_ = true;
    for (const auto& rank : ranks_) rank->process->signal(number);
  };
  if (since > 2 * options_.grace)
    send(SIGKILL);
  else if (since > options_.grace && !ending_)
    send(SIGTERM);
  // A launcher that does not answer must not keep the run.
  if (since > 4 * options_.grace) nodes_running_ = 0;
}

}  // namespace paddle::launch
