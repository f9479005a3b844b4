#include "train_servers.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/files.h"
#include "base/interrupt.h"
#include "base/key_text.h"
#include "base/parallel.h"
#include "base/text.h"
#include "comm/join.h"
#include "comm/rendezvous.h"
#include "common.h"
#include "common_options.h"
#include "ps/sockets.h"
#include "table_wires.h"
#include "train/runs/run_folder.h"

namespace paddle::cli {
namespace {

/// The token of runs that state none: only where no other machine can connect.
std::string token_of(const ps::ServersPlace& place) {
  if (!place.token.empty()) return place.token;
  if (place.is_local) return "run";
  fail(ErrorCode::kUsage,
       "servers of tables on several machines need PADDLE_RENDEZVOUS_TOKEN, a shared secret, the "
       "same for all servers and workers: any client that knows it can change rows");
}

/// Where a server listens: where workers expect it, or, if paddle-launch tells them, on the
/// interface that reaches the launcher.
std::string listening_address(const ps::ServersPlace& place, const ServeOptions& options) {
  if (!place.addresses.empty()) return place.addresses[static_cast<size_t>(place.index)];
  if (place.is_local || place.rendezvous.empty()) return options.listen;
  const std::string host = comm::parse_address(place.rendezvous, "PADDLE_RENDEZVOUS").host;
  return comm::address_towards(host) + ":0";
}

/// WORKER:STEP of a run that is repeated from step `from`.
std::pair<int, int64_t> skipped_step(const std::string& text, int64_t from,
                                     const ps::RecordedOrder& order) {
  int worker = -1;
  int64_t step = -1;
  const char* const end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, worker);
  const bool has_worker = read.ec == std::errc() && read.ptr != end && *read.ptr == ':';
  if (has_worker) read = std::from_chars(read.ptr + 1, end, step);
  if (!has_worker || read.ec != std::errc() || read.ptr != end || worker < 0 ||
      worker >= order.workers || step <= from || step > order.last_step)
    fail(ErrorCode::kUsage, "--skip: expected WORKER:STEP with workers 0 to ", order.workers - 1,
         " and steps ", from + 1, " to ", order.last_step, ", found '", text, "'");
  return {worker, step};
}

}  // namespace

void use_servers(train::RunConfig& config, int servers) {
  train::ParameterServer& section = config.parameter_server;
  section.on_servers = true;
  section.servers = servers;
  if (section.lane_count() < servers)
    fail(ErrorCode::kUsage, "parameter_server.lanes: ", section.lanes, " lanes are too few for ",
         servers, " servers");
}

void add_replay_options(App& app, ReplayOfRun& replay) {
  app.add_option("--replay", replay.run,
                 "repeat this asynchronous run, bit for bit, up to its end or --until");
  app.add_option("--from", replay.from, "with --replay: from the checkpoint of this step")
      ->check(in_range(int64_t{0}, int64_t{1} << 40));
  app.add_flag("--check", replay.checks,
               "with --replay: compare what each message holds, by digests");
  app.add_option("--skip", replay.skipped,
                 "with --replay: leave out the gradients of a worker in a step, WORKER:STEP, which "
                 "are not added to tables; may be repeated");
}

void check_replay(const ReplayOfRun& replay, bool resumes, const train::TrainOptions& options) {
  if (replay.run.empty()) {
    if (replay.from > 0 || replay.checks || !replay.skipped.empty())
      fail(ErrorCode::kUsage, "--from, --check and --skip are for --replay RUN");
    return;
  }
  if (resumes || options.benchmark > 0 || options.eager)
    fail(ErrorCode::kUsage, "--replay cannot be given with ",
         resumes                 ? "--resume"
         : options.benchmark > 0 ? "--benchmark"
                                 : "--eager");
  if (options.until_share > 0)
    fail(ErrorCode::kUsage, "--until: with --replay a step is expected, such as 400");
  if (replay.checks && !replay.skipped.empty())
    fail(ErrorCode::kUsage, "--check compares a replay with its run; with --skip they differ");
}

ps::WatchedRow parse_watched(const std::string& text) {
  ps::WatchedRow out;
  const size_t colon = text.rfind(':');
  const std::string key = colon == text.npos ? "" : text.substr(colon + 1);
  if (colon == 0 ||
      (read_key(key, true, out.key) != std::errc() && read_key(key, false, out.key) != std::errc()))
    fail(ErrorCode::kUsage, "--watch: expected TABLE:KEY, found '", text, "'");
  out.table = text.substr(0, colon);
  return out;
}

void use_replay(train::RunConfig& config, train::TrainOptions& options, const ReplayOfRun& replay,
                int workers) {
  train::TrainOptions::Replay& of_run = options.replay.emplace();
  of_run.run = replay.run;
  if (replay.from > 0) {
    of_run.checkpoint = join_path(replay.run, str("checkpoints/", replay.from));
    if (!is_directory(of_run.checkpoint))
      fail(ErrorCode::kUsage, "--from: no checkpoint ", replay.from, " in ",
           join_path(replay.run, "checkpoints"));
    options.fitted = train::fitted_of_checkpoint(of_run.checkpoint);
  }
  std::optional<int64_t> until;
  if (options.until_step > 0) until = options.until_step;
  const ps::RecordedOrder order = ps::read_order(replay.run, replay.from, until);
  if (workers > 0 && workers != order.workers)
    fail(ErrorCode::kUsage, "--replay: ", replay.run, " is a run of ", order.workers,
         " workers, this one has ", workers, "; expected --simulate ", order.workers,
         " or paddle-launch -n ", order.workers);
  for (const std::string& each : replay.skipped)
    of_run.skipped.push_back(skipped_step(each, replay.from, order));
  if (!order.has_ended && !until)
    print_note(
        str(replay.run, ": the run did not end; it is repeated up to step ", order.last_step));
  train::ParameterServer& section = config.parameter_server;
  section.on_servers = true;
  section.lanes = order.lanes;
  section.durability = ps::Durability::kNone;
  section.updates.order_log = true;
  section.replay = {.folder = join_path(replay.run, ps::kOrderFolder),
                    .from = replay.from,
                    .until = order.last_step,
                    .checks_digests = replay.checks};
  options.until_step = order.last_step;
  of_run.fences = order.fences;
}

int serve_tables(train::RunConfig config, const std::string& output, const ps::ServersPlace& place,
                 const ServeOptions& options) {
  use_servers(config, place.servers);
  const std::string listen = listening_address(place, options);
  const comm::Address address = comm::parse_address(listen, "--listen");
  ps::ServersPlace own = place;
  own.is_local = place.is_local && comm::is_loopback(address.host);
  const ps::Wire wire = wire_of(config.parameter_server, own, CertificateRole::kListener);
  watch_for_interrupts();
  // Workers and other servers need the other cores.
  set_thread_count(std::max(1, config.threads));
  const std::string token = token_of(own);
  ps::Server server(train::server_options(config, place.index, output));
  ps::SocketServer sockets(server, address.host, address.port, token, wire);
  if (const std::string problem = server.problem(); !problem.empty())
    print_warning("the log of this server cannot be used: " + problem);
  comm::Socket registered;
  if (place.addresses.empty() && !place.rendezvous.empty())
    registered = comm::register_server(place.rendezvous, token, place.index, sockets.address());
  const auto [first, last] =
      ps::lanes_of_server(place.index, place.servers, config.parameter_server.lane_count());
  print_note(str("server ", place.index, " of ", place.servers, " at ", sockets.address(),
                 ", lanes ", first, " to ", last - 1, encryption_note(wire, own.is_local)));
  sockets.run([] { return pending_interrupt() != 0; }, options.stays);
  return pending_interrupt() != 0 && !options.stays ? 128 + pending_interrupt() : 0;
}

train::ServersOfRun servers_of(const train::RunConfig& config, const ps::ServersPlace& place) {
  const comm::JoinOptions limits = comm::JoinOptions::from_environment();
  ps::SocketLinkOptions link;
  link.timeout = limits.join_timeout;
  link.wire = wire_of(config.parameter_server, place, CertificateRole::kCaller);
  if (place.addresses.empty()) {
    link.token = place.token;
    link.address = [place](int server) {
      return comm::find_servers(place.rendezvous, place.token,
                                place.servers)[static_cast<size_t>(server)];
    };
  } else {
    link.token = token_of(place);
    link.address = [place](int server) { return place.addresses[static_cast<size_t>(server)]; };
  }
  train::ServersOfRun out;
  out.servers = place.servers;
  out.link = [link](int) { return ps::socket_link(link); };
  out.timeout = limits.timeout;
  out.slow_after = limits.dead_after;
  return out;
}

}  // namespace paddle::cli
