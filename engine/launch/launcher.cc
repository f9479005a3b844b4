#include "launch/launcher.h"

#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <optional>
#include <sstream>

#include "base/environment.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "launch/attempt.h"
#include "launch/server_group.h"

namespace paddle::launch {
namespace {

using Clock = std::chrono::steady_clock;
using comm::seconds_text;

constexpr int kLost = static_cast<int>(ErrorCode::kPeer);

/// Said to launchers that node 0 has started: it says for all what has failed.
constexpr const char* kStartedByNode0 = "PADDLE_STARTED_BY_NODE_0";

/// The launchers that node 0 starts on other machines, whose output is passed on.
class RemoteLaunchers {
 public:
  RemoteLaunchers(const LaunchOptions& options, const std::string& rendezvous,
                  const std::string& token) {
    for (size_t node = 1; node < options.hosts.size(); ++node) {
      const Host& host = options.hosts[node];
      // The word comes over standard input: others on the machine can read command lines.
      std::string line =
          "cd " + quoted(std::filesystem::current_path().string()) +
          " && read -r PADDLE_RENDEZVOUS_TOKEN && export PADDLE_RENDEZVOUS_TOKEN && " +
          kStartedByNode0 + "=1 exec " + quoted(program_path()) +
          str(" launch --nodes ", options.hosts.size(), " --node-rank ", node, " --rendezvous ",
              rendezvous, " -n ", host.ranks);
      if (options.servers > 0) line += str(" --servers ", options.servers);
      if (!environment("PADDLE_INSECURE_NETWORK").empty()) line += " --insecure-network";
      if (!options.logs.empty()) line += " --logs " + quoted(options.logs);
      line += " --timeout " + seconds_text(options.timeout) + " --dead-after " +
              seconds_text(options.dead_after);
      for (const std::string& argument : options.command) line += " " + quoted(argument);
      std::vector<std::string> command = options.ssh;
      command.push_back(host.name);
      command.push_back(line);
      processes_.push_back(std::make_unique<Process>(
          command, std::vector<std::pair<std::string, std::string>>{}, token + "\n"));
    }
  }

  /// Passes output on; the first one that has ended with an error.
  std::optional<std::string> advance(const LaunchOptions& options) {
    for (size_t i = 0; i < processes_.size(); ++i) {
      Process& process = *processes_[i];
      process.update();
      while (true) {
        const std::string out = process.read_output(), err = process.read_error();
        if (out.empty() && err.empty()) break;
        if (!out.empty() && options.output) options.output(out, false);
        errors_ += err;
        if (!err.empty() && options.output) options.output(err, true);
      }
      if (process.status() && *process.status() != 0)
        return str("cannot start the ranks of ", options.hosts[i + 1].name, ": ",
                   last_error_line(errors_));
    }
    return std::nullopt;
  }
  bool ended() const {
    for (const auto& process : processes_)
      if (!process->status()) return false;
    return true;
  }

 private:
  static std::string quoted(const std::string& word) {
    std::string out = "'";
    for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
  }
  std::vector<std::unique_ptr<Process>> processes_;
  std::string errors_;
};

std::string own_host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "127.0.0.1";
}

/// Where node 0 listens: as the options say, else on a free port, of the loopback interface if
/// there is no other machine.
comm::Address address_of_node_0(const LaunchOptions& options) {
  if (!options.rendezvous.empty()) return comm::parse_address(options.rendezvous, "--rendezvous");
  if (options.nodes == 1 && options.hosts.empty()) return {"127.0.0.1", 0};
  const std::string& other = options.hosts.size() > 1 ? options.hosts[1].name : own_host_name();
  const std::string address = comm::address_towards(other);
  return {address.empty() ? own_host_name() : address, 0};
}

/// The token of a run with several launchers that are not started over ssh. Beyond this machine it
/// must be secret.
std::string shared_token(const std::string& rendezvous) {
  std::string stated = environment("PADDLE_RENDEZVOUS_TOKEN");
  if (!stated.empty()) return stated;
  if (comm::is_loopback(comm::parse_address(rendezvous, "--rendezvous").host)) return "run";
  fail(ErrorCode::kUsage,
       "--nodes: set PADDLE_RENDEZVOUS_TOKEN to a shared secret, the same for all launchers: any "
       "client "
       "that reaches ",
       rendezvous, " and knows it can join the run");
}

/// Random unless others must know it beforehand.
std::string token_of_node_0(const LaunchOptions& options) {
  return options.nodes > 1 && options.hosts.empty() ? shared_token(options.rendezvous)
                                                    : environment("PADDLE_RENDEZVOUS_TOKEN");
}

/// Node 0, which decides.
class FirstNode {
 public:
  explicit FirstNode(const LaunchOptions& options)
      : options_(options),
        rendezvous_(std::max(1, options.ranks), address_of_node_0(options).host,
                    address_of_node_0(options).port, token_of_node_0(options)) {
    if (!options.hosts.empty())
      remote_.emplace(options, rendezvous_.address(), rendezvous_.token());
  }

  LaunchResult run() {
    if (const auto failure = meet_nodes()) return *failure;
    std::vector<int> servers = rendezvous_.node_servers(options_.nodes);
    servers[0] = options_.servers;
    options_.all_servers = std::accumulate(servers.begin(), servers.end(), 0);
    if (options_.servers > 0)
      servers_.emplace(options_, rendezvous_.address(), rendezvous_.token());
    std::vector<int> counts = rendezvous_.node_ranks(options_.nodes);
    counts[0] = options_.ranks;
    const int world = std::accumulate(counts.begin(), counts.end(), 0);
    for (int number = 0;; ++number) {
      rendezvous_.start_over(world, number);
      rendezvous_.send_to_nodes([&](int node) {
        const auto before = [node](const std::vector<int>& of) {
          return std::accumulate(of.begin(), of.begin() + node, 0);
        };
        return str("start ", number, " ", before(counts), " ", world, " ", before(servers), " ",
                   options_.all_servers);
      });
      Attempt attempt(options_, &rendezvous_, nullptr, number);
      LaunchResult result = attempt.run(0, world, rendezvous_.address(), rendezvous_.token(), [&] {
        pass_remote_output();
        return servers_ ? servers_->advance() : std::nullopt;
      });
      const bool again = result.status == kLost && number < options_.restarts &&
                         !attempt.interrupted() && !attempt.node_lost();
      if (!again) {
        rendezvous_.send_to_nodes(str("exit ", result.status));
        end_remote();
        return result;
      }
      if (options_.notice)
        options_.notice(str("restart ", number + 1, " of ", options_.restarts, ": ", result.error));
    }
  }

 private:
  /// Waits for the launchers of all other nodes; a failure if they do not come.
  std::optional<LaunchResult> meet_nodes() {
    const SignalScope signals;
    const auto deadline = Clock::now() + options_.join_timeout;
    while (true) {
      std::string missing;
      const std::vector<int> counts = rendezvous_.node_ranks(options_.nodes);
      for (size_t node = 1; node < counts.size(); ++node)
        if (counts[node] < 0) missing += (missing.empty() ? "" : ", ") + std::to_string(node);
      if (missing.empty()) return std::nullopt;
      if (SignalScope::count() > 0) return LaunchResult{128 + SignalScope::last(), ""};
      if (Clock::now() > deadline)
        return LaunchResult{
            kLost, str("node 0 has waited ", seconds_text(options_.join_timeout), " seconds at ",
                       rendezvous_.address(), " for the launcher of node ", missing)};
      wait();
      rendezvous_.advance();
      if (const auto failure = pass_remote_output()) return LaunchResult{kLost, *failure};
    }
  }

  void wait() const {
    std::vector<pollfd> waits;
    for (const int descriptor : rendezvous_.descriptors()) waits.push_back({descriptor, POLLIN, 0});
    constexpr int kMoment = 50;
    ::poll(waits.data(), waits.size(), kMoment);
  }

  std::optional<std::string> pass_remote_output() {
    return remote_ ? remote_->advance(options_) : std::nullopt;
  }

  /// Takes what the launchers on other machines still say.
  void end_remote() {
    const auto deadline = Clock::now() + options_.grace;
    while (remote_ && !remote_->ended() && Clock::now() < deadline) {
      wait();
      pass_remote_output();
    }
  }

  LaunchOptions options_;
  comm::Rendezvous rendezvous_;
  std::optional<RemoteLaunchers> remote_;
  std::optional<ServerGroup> servers_;
};

/// Another node, which does what node 0 says.
LaunchResult run_further_node(LaunchOptions options) {
  const std::string token = shared_token(options.rendezvous);
  NodeLink link(options.rendezvous, token, options.node, options.ranks, options.servers,
                options.join_timeout);
  std::optional<ServerGroup> servers;
  std::string line;
  {
    const SignalScope signals;
    while (line.empty()) {
      pollfd wait{link.descriptor(), POLLIN, 0};
      constexpr int kMoment = 50;
      ::poll(&wait, 1, kMoment);
      if (SignalScope::count() > 0) return {128 + SignalScope::last(), ""};
      const auto said = link.next_line();
      if (said && said->empty())
        return {
            kLost,
            str("node 0 at ", options.rendezvous,
                " has rejected this launcher or has exited: each needs a different --node-rank, "
                "and all the same PADDLE_RENDEZVOUS_TOKEN")};
      if (said) line = *said;
    }
  }
  while (true) {
    std::istringstream in(line);
    std::string word;
    int number = 0, first = 0, world = 0;
    in >> word >> number;
    if (word != "start" || !(in >> first >> world >> options.servers_before >> options.all_servers))
      return {number, ""};
    if (options.servers > 0 && !servers) servers.emplace(options, options.rendezvous, token);
    Attempt attempt(options, nullptr, &link, number);
    LaunchResult result = attempt.run(first, world, options.rendezvous, token,
                                      [&] { return servers ? servers->advance() : std::nullopt; });
    line = attempt.final_line();
    if (line.empty()) return result;
    if (!line.starts_with("exit ")) continue;
    int status = kLost;
    std::istringstream(line) >> word >> status;
    if (!environment(kStartedByNode0).empty() || status == 0)
      result.error.clear();
    else if (result.error.empty())
      result.error = str("the run has ended with status ", status, "; node 0 says why");
    return {status, result.error};
  }
}

}  // namespace

std::vector<Host> parse_hosts(const std::string& text) {
  std::vector<Host> hosts;
  for (const std::string& entry : split(text, ',')) {
    Host host;
    const size_t colon = entry.find(':');
    host.name = std::string(trim(entry.substr(0, colon)));
    if (colon != std::string::npos) {
      const auto ranks = comm::parse_integer(entry.substr(colon + 1));
      if (!ranks || *ranks < 1 || *ranks > comm::kMaxRanks) host.name.clear();
      host.ranks = static_cast<int>(ranks.value_or(1));
    }
    if (host.name.empty() || host.name.starts_with('-'))
      fail(ErrorCode::kUsage, "--hosts: expected names with ranks such as a:8,b:8, found '", entry,
           "'");
    hosts.push_back(std::move(host));
  }
  return hosts;
}

LaunchResult launch(const LaunchOptions& options) {
  if (options.node > 0) return run_further_node(options);
  if (options.hosts.empty()) return FirstNode(options).run();
  LaunchOptions own = options;
  const std::string& first = options.hosts[0].name;
  // The first host is this machine, or all ranks are elsewhere.
  if (first != "localhost" && first != "127.0.0.1" && first != own_host_name()) {
    own.hosts.insert(own.hosts.begin(), Host{own_host_name(), 0});
  }
  own.nodes = static_cast<int>(own.hosts.size());
  own.ranks = own.hosts[0].ranks;
  return FirstNode(own).run();
}

}  // namespace paddle::launch
