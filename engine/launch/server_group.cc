#include "launch/server_group.h"

#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "comm/sockets.h"
#include "launch/attempt.h"

namespace paddle::launch {
namespace {

constexpr size_t kKeptErrors = 16384;
/// A server that lives so briefly, so often, does not recover.
constexpr auto kShortLife = std::chrono::milliseconds(500);
constexpr int kMaxShortLives = 10;

}  // namespace

ServerGroup::ServerGroup(const LaunchOptions& options, std::string address, std::string token)
    : options_(options),
      address_(std::move(address)),
      token_(std::move(token)),
      servers_(static_cast<size_t>(options.servers)) {
  if (!options_.logs.empty()) ensure_directory(options_.logs);
  for (size_t i = 0; i < servers_.size(); ++i) start(i);
}

ServerGroup::~ServerGroup() {
  for (const Server& server : servers_) {
    server.process->signal(SIGCONT);
    server.process->signal(SIGTERM);
  }
  const auto deadline = Clock::now() + options_.grace;
  bool lives = true;
  while (lives && Clock::now() < deadline) {
    lives = false;
    for (Server& server : servers_) {
      server.process->update();
      while (take_output(server) && server.process->status()) {
      }
      lives = lives || !server.process->status();
    }
    constexpr auto kMoment = std::chrono::milliseconds(10);
    if (lives) std::this_thread::sleep_for(kMoment);
  }
}

void ServerGroup::start(size_t i) {
  Server& server = servers_[i];
  const int number = name(i);
  if (!options_.logs.empty() && !server.log.is_open()) {
    const std::string path =
        (std::filesystem::path(options_.logs) / str("server-", number, ".log")).string();
    server.log.open(path, std::ios::trunc);
    if (!server.log) fail(ErrorCode::kDevice, "cannot write '", path, "'");
  }
  server.errors.clear();
  server.started = Clock::now();
  server.reported_stopped = false;
  server.process = std::make_unique<Process>(
      options_.command, std::vector<std::pair<std::string, std::string>>{
                            {"PADDLE_ROLE", "server"},
                            {"PADDLE_SERVER", std::to_string(number)},
                            {"PADDLE_SERVERS", std::to_string(options_.all_servers)},
                            {"PADDLE_NODES", std::to_string(options_.nodes)},
                            {"PADDLE_RENDEZVOUS", address_},
                            {"PADDLE_RENDEZVOUS_TOKEN", token_}});
}

bool ServerGroup::take_output(Server& server) {
  const std::string out = server.process->read_output(), err = server.process->read_error();
  if (server.log.is_open()) {
    server.log << out << err;
    server.log.flush();
  }
  server.errors += err;
  if (server.errors.size() > kKeptErrors)
    server.errors.erase(0, server.errors.size() - kKeptErrors);
  return !out.empty() || !err.empty();
}

std::optional<LaunchResult> ServerGroup::advance() {
  for (size_t i = 0; i < servers_.size(); ++i) {
    Server& server = servers_[i];
    const int number = name(i);
    server.process->update();
    const bool has_ended = server.process->status().has_value();
    while (take_output(server) && has_ended) {
    }
    if (!has_ended) {
      const auto since = server.process->stopped_since();
      if (!since) server.reported_stopped = false;
      if (since && !server.reported_stopped && Clock::now() - *since > options_.dead_after) {
        server.reported_stopped = true;
        if (options_.notice)
          options_.notice(str("server ", number, " has been stopped for ",
                              comm::seconds_text(options_.dead_after),
                              " seconds; the ranks wait for it"));
      }
      continue;
    }
    const int killed_by = server.process->killed_by(), status = *server.process->status();
    if (killed_by == 0 && status != 0) {
      const std::string line = last_error_line(server.errors);
      return LaunchResult{status, line.empty()
                                      ? str("server ", number, " ended with status ", status)
                                      : str("server ", number, ": ", line)};
    }
    server.short_lives = Clock::now() - server.started < kShortLife ? server.short_lives + 1 : 0;
    const std::string cause =
        killed_by != 0 ? str("was killed by signal ", killed_by, " (", strsignal(killed_by), ")")
                       : std::string("has ended");
    if (server.short_lives >= kMaxShortLives)
      return LaunchResult{
          static_cast<int>(ErrorCode::kPeer),
          str("server ", number, " ", cause, " ", kMaxShortLives, " times just after its start")};
    if (options_.notice) options_.notice(str("server ", number, " ", cause, "; it starts again"));
    start(i);
  }
  return std::nullopt;
}

}  // namespace paddle::launch
