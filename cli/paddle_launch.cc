// paddle-launch -n N COMMAND …: starts the ranks of a parallel run, on one machine or several.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "comm/communicator.h"
#include "comm/join.h"
#include "comm/sockets.h"
#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "launch/emit.h"
#include "launch/launcher.h"
#include "launch/link_check.h"

namespace {

using namespace paddle;

std::chrono::milliseconds milliseconds(double seconds) {
  constexpr double kMilliseconds = 1000;
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * kMilliseconds));
}

/// Set for the ranks that `--check` starts.
constexpr const char* kCheckedRank = "PADDLE_CHECKED_RANK";

bool environment_says(const char* name) {
  const char* const value = std::getenv(name);
  return value && *value;
}

/// Runs a rank of `--check`.
int check_as_rank() {
  const comm::Membership membership = comm::membership_from_environment();
  comm::Communicator communicator(
      membership.size > 1 ? comm::join(membership, comm::JoinOptions::from_environment())
                          : nullptr);
  const launch::LinkTimes times =
      launch::check_links(communicator, cli::version_text(), {4 << 10, 1 << 20, 64 << 20});
  if (communicator.is_root()) cli::print(launch::text(times, communicator.size()));
  return 0;
}

/// The machines of the run and the command, without starting anything.
void print_plan(const launch::LaunchOptions& options, bool json) {
  std::vector<launch::Host> hosts = options.hosts;
  if (hosts.empty()) hosts.push_back({"this machine", options.ranks});
  nlohmann::ordered_json machines = nlohmann::ordered_json::array();
  int first = 0;
  for (const launch::Host& host : hosts) {
    machines.push_back({{"host", host.name}, {"ranks", host.ranks}});
    const int last = first + host.ranks - 1;
    if (options.nodes > 1)
      cli::print_line(str("node ", options.node, " of ", options.nodes, ": ", host.ranks,
                          host.ranks == 1 ? " rank" : " ranks"));
    else
      cli::print_line(
          str(host.name, ": ",
              host.ranks == 1 ? str("rank ", first) : str("ranks ", first, " to ", last)));
    first = last + 1;
  }
  cli::print_line(launch::quoted_command(options.command));
  if (json)
    cli::print(nlohmann::ordered_json({{"hosts", machines}, {"command", options.command}}).dump() +
               "\n");
}

void print_emitted(const std::string& form, launch::EmittedRun& run,
                   const launch::LaunchOptions& options) {
  constexpr size_t kMaxName = 40;
  if (run.name.empty() || run.name.size() > kMaxName || run.name.front() == '-' ||
      run.name.back() == '-' ||
      run.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos)
    fail(ErrorCode::kUsage, "--name: expected up to ", kMaxName,
         " lower-case letters, digits and dashes, found '", run.name, "'");
  if (options.servers == 0 || !options.hosts.empty())
    fail(ErrorCode::kUsage,
         "--emit describes a run with servers of tables: give --servers and -n; without servers, "
         "srun and indexed jobs start the command as it is");
  run.ranks = options.ranks;
  run.servers = options.servers;
  run.command = options.command;
  cli::print(form == "slurm" ? launch::slurm_script(run) : launch::kubernetes_objects(run));
}

/// kUsage if one of the options was given.
void reject_options(std::initializer_list<const cli::Option*> options, const std::string& why) {
  for (const cli::Option* option : options)
    if (!option->empty()) fail(ErrorCode::kUsage, option->get_name(), " has no effect ", why);
}

/// kUsage unless a program that runs ranks as threads is a part of the command.
void check_simulates(const std::vector<std::string>& command) {
  for (size_t i = 0; i < command.size(); ++i) {
    const std::string name = std::filesystem::path(command[i]).filename().string();
    const std::string next = i + 1 < command.size() ? command[i + 1] : "";
    const std::string tool = name == "paddle" ? "paddle-" + next : name;
    if (tool == "paddle-train" || tool == "paddle-profile" || tool == "paddle-eval") return;
  }
  fail(ErrorCode::kUsage, "--simulate: '", command[0],
       "' cannot run ranks in one process; paddle-train, paddle-profile and paddle-eval can");
}

int run_launch(int argc, char** argv) {
  cli::App app{"Starts a command on N ranks, which share the work as its config says."};
  app.footer("Example: paddle-launch -n 4 paddle-train config.yaml parallel.data=4");
  launch::LaunchOptions options;
  double dead_after = 10, timeout = 1800, join_timeout = 120;
  constexpr double kDay = 86400;
  std::string hosts, ssh, emit;
  launch::EmittedRun emitted;
  bool check = false, simulate = false, dry_run = false, json = false, insecure_network = false;
  cli::Option* const ranks =
      app.add_option("-n,--ranks", options.ranks, "processes to start on this machine")
          ->check(cli::in_range(1, comm::kMaxRanks));
  cli::Option* const nodes =
      app.add_option("--nodes,--nnodes", options.nodes, "launchers of the run, one a machine")
          ->check(cli::in_range(1, comm::kMaxRanks));
  cli::Option* const node =
      app.add_option("--node-rank", options.node, "number of this launcher, from 0")
          ->check(cli::in_range(0, comm::kMaxRanks - 1));
  cli::Option* const rendezvous =
      app.add_option("--rendezvous", options.rendezvous, "host:port of the launcher with number 0");
  app.add_option(
         "--hosts", hosts,
         "machines with their ranks, such as a:8,b:8, on which launchers are started by ssh")
      ->excludes(ranks)
      ->excludes(nodes)
      ->excludes(node);
  app.add_option("--ssh", ssh, "program that starts the launchers of --hosts, instead of ssh");
  cli::Option* const servers =
      app.add_option("--servers", options.servers,
                     "servers of tables to start on each machine, next to the ranks: the same "
                     "command, which the environment tells what it is; those that are killed are "
                     "started again")
          ->check(cli::in_range(1, comm::kMaxRanks));
  app.add_flag("--insecure-network", insecure_network,
               "several machines: let servers of tables start without TLS");
  cli::Option* const restarts =
      app.add_option("--restarts", options.restarts,
                     "how often a run that has lost a rank continues from its last checkpoint")
          ->check(cli::in_range(0, 1000));
  cli::Option* const logs =
      app.add_option("--logs", options.logs, "folder for rank-N.log, what each rank writes");
  cli::Option* const dead =
      app.add_option("--dead-after", dead_after,
                     "time after which a rank that is stopped or silent counts as lost: 10, 30s, "
                     "1m")
          ->check(cli::duration(0.1, kDay));
  cli::Option* const longest =
      app.add_option("--timeout", timeout, "longest wait of a rank for another one: 1800, 30m, 2h")
          ->check(cli::duration(1, 365 * kDay));
  cli::Option* const joining = app.add_option("--join-timeout", join_timeout,
                                              "time limit for all launchers and ranks to connect")
                                   ->check(cli::duration(1, kDay));
  app.add_flag("--check", check,
               "no command: compare the versions of the ranks and measure their connections");
  app.add_option("--emit", emit,
                 "start nothing: print the run with its servers for another launcher")
      ->check(cli::one_of({"kubernetes", "slurm"}));
  cli::Option* const name =
      app.add_option("--name", emitted.name, "with --emit: of the objects and the job (paddle)");
  cli::Option* const image = app.add_option("--image", emitted.image,
                                            "with --emit kubernetes: the container image (paddle)");
  app.add_flag("--simulate", simulate,
               "run the ranks in one process: the command gets the option --simulate N")
      ->excludes(nodes);
  app.add_flag("--dry-run", dry_run,
               "print the machines, their ranks and the command; start nothing");
  app.add_flag("--json", json,
               "print a JSON object on the last line: the exit status and the first failure; with "
               "--dry-run the machines and the command");
  app.add_option("COMMAND", options.command, "the command and its arguments")->allow_extra_args();
  // Everything from the command on is its own.
  const int own = app.leading_options(argc, argv);
  if (const auto status = cli::read_command_line(app, own, argv)) return *status;
  options.command.assign(argv + own, argv + argc);
  if (!options.command.empty() && options.command[0] == "--")
    options.command.erase(options.command.begin());
  if (check != options.command.empty())
    fail(ErrorCode::kUsage, check ? "--check runs no command, found '" + options.command[0] + "'"
                                  : std::string("no command is given (see paddle-launch --help)"));
  if (check && environment_says(kCheckedRank)) return check_as_rank();
  if (check) {
    ::setenv(kCheckedRank, "1", 1);
    options.command = {program_path(), "launch", "--check"};
  }
  if (!hosts.empty())
    options.hosts = launch::parse_hosts(hosts);
  else if (ranks->empty())
    fail(ErrorCode::kUsage, "-n says how many processes to start, or --hosts on which machines");
  if (emit.empty()) reject_options({name, image}, "without --emit");
  if (emit == "slurm") reject_options({image}, "with --emit slurm");
  if (nodes->empty()) reject_options({node}, "without --nodes");
  if (!emit.empty()) {
    reject_options({nodes, rendezvous, restarts, logs, dead, longest, joining}, "with --emit");
    emitted.insecure_network = insecure_network;
    print_emitted(emit, emitted, options);
    return 0;
  }
  if (simulate) {
    if (check || !hosts.empty())
      fail(ErrorCode::kUsage,
           "--simulate runs a command on this machine, without --check or --hosts");
    reject_options({rendezvous, longest, joining}, "with --simulate: no rank is a process");
    check_simulates(options.command);
    options.command.insert(options.command.end(), {"--simulate", str(options.ranks)});
    if (options.servers > 0)
      options.command.insert(options.command.end(), {"--servers", str(options.servers)});
    options.ranks = 1;
    options.servers = 0;
  }
  if (!servers->empty() && check) fail(ErrorCode::kUsage, "--check starts no servers of tables");
  if (insecure_network) ::setenv("PADDLE_INSECURE_NETWORK", "1", 1);
  if (hosts.empty() && !ssh.empty())
    fail(ErrorCode::kUsage, "--ssh starts the launchers of --hosts, which is not given");
  if (options.node >= options.nodes)
    fail(ErrorCode::kUsage, "--node-rank ", options.node, ": the run has ", options.nodes,
         options.nodes == 1 ? " launcher" : " launchers", ", which count from 0");
  if (options.nodes > 1 && rendezvous->empty())
    fail(ErrorCode::kUsage, "--nodes ", options.nodes,
         " needs --rendezvous HOST:PORT, where the launcher with number 0 listens");
  if (!rendezvous->empty()) comm::parse_address(options.rendezvous, "--rendezvous");
  if (!ssh.empty()) options.ssh = split(ssh, ' ');
  options.dead_after = milliseconds(dead_after);
  options.timeout = milliseconds(timeout);
  options.join_timeout = milliseconds(join_timeout);
  if (dry_run) {
    print_plan(options, json);
    return 0;
  }
  options.output = [](const std::string& bytes, bool is_error) {
    if (is_error)
      std::fputs(bytes.c_str(), stderr);
    else
      cli::print_data(bytes);
  };
  options.notice = [](const std::string& line) { cli::print_note(line); };
  const launch::LaunchResult result = launch::launch(options);
  if (!result.error.empty()) {
    const bool quotes_rank = result.error.find("error: ") != std::string::npos;
    cli::print_error((quotes_rank ? "" : "error: ") + result.error);
  }
  if (json) {
    nlohmann::ordered_json out = {{"status", result.status}};
    if (!result.error.empty()) out["error"] = result.error;
    cli::print(out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  return result.status;
}

}  // namespace

namespace paddle::cli {

int launch_command(int argc, char** argv) {
  return run_tool([&] { return run_launch(argc, argv); });
}

}  // namespace paddle::cli
