#include "ps/server.h"

#include <algorithm>
#include <filesystem>
#include <future>
#include <sstream>

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"

namespace paddle::ps {

std::string UpdateOptions::text() const {
  if (is_sync()) return "sync";
  const char* const order = order_log ? "true" : "false";
  if (is_geo())
    return str("geo, combine ", combines_by_mean ? "mean" : "sum", ", order_log ", order);
  return str("async, staleness ", staleness ? std::to_string(*staleness) : "none", ", order_log ",
             order);
}

std::string WorkerPlace::text() const {
  return str("tables ", worker, " ", workers, " ", session, " ", servers, " ", lanes);
}

std::optional<WorkerPlace> WorkerPlace::parse(const std::string& text) {
  constexpr int kMaxWorkers = 1024;
  std::istringstream in(text);
  std::string word, more;
  WorkerPlace out;
  if (!(in >> word >> out.worker >> out.workers >> out.session >> out.servers >> out.lanes) ||
      word != "tables" || in >> more)
    return std::nullopt;
  if (out.workers < 1 || out.workers > kMaxWorkers || out.worker < 0 || out.worker >= out.workers ||
      out.session == 0)
    return std::nullopt;
  return out;
}

namespace {

/// Makes lanes, which may read their logs, on all cores.
std::vector<Lane> make_lanes(std::vector<LaneOptions> options) {
  std::vector<std::future<Lane>> parts;
  std::vector<Lane> out;
  const auto cores = static_cast<size_t>(std::max(1, available_cores()));
  for (size_t first = 0; first < options.size(); first += cores) {
    for (size_t i = first; i < std::min(options.size(), first + cores); ++i)
      parts.push_back(
          std::async(std::launch::async, [&each = options[i]] { return Lane(std::move(each)); }));
    for (; out.size() < parts.size();) out.push_back(parts[out.size()].get());
  }
  return out;
}

}  // namespace

Server::Server(ServerOptions options)
    : options_(std::move(options)),
      range_(lanes_of_server(options_.index, options_.servers, options_.lanes)) {
  std::vector<LaneOptions> lanes;
  for (int lane = range_.first; lane < range_.second; ++lane) {
    LaneOptions& each = lanes.emplace_back();
    each.lane = lane;
    each.lanes = options_.lanes;
    each.open = options_.open;
    each.settings = options_.settings;
    each.output = options_.output;
    each.updates = options_.updates;
    each.replay = options_.replay;
    each.watched = options_.watched;
    if (!options_.updates.is_sync() && options_.updates.order_log)
      each.order_folder = (std::filesystem::path(options_.output) / kOrderFolder).string();
    each.syncs_log = options_.durability == Durability::kMachine;
    if (options_.durability != Durability::kNone)
      each.log_folder =
          (std::filesystem::path(options_.output) / kServersFolder / str("lane-", lane)).string();
  }
  lanes_ = make_lanes(std::move(lanes));
  if (!lanes_.empty()) ended_.assign(static_cast<size_t>(lanes_.front().workers()), 0);
}

std::string Server::problem() const {
  for (const Lane& lane : lanes_)
    if (!lane.problem().empty()) return lane.problem();
  return "";
}

Message Server::begin_worker(const WorkerPlace& place) {
  if (place.servers != options_.servers || place.lanes != options_.lanes)
    fail(ErrorCode::kConfig, "tables: server ", options_.index, " is one of ", options_.servers,
         " with ", options_.lanes, " lanes, worker ", place.worker, " expects ", place.servers,
         " with ", place.lanes);
  uint64_t newest = 0;
  for (const Lane& lane : lanes_) newest = std::max(newest, lane.session());
  if (place.session < newest) fail(ErrorCode::kPeer, "tables: a worker of an earlier run");
  for (Lane& lane : lanes_) {
    if (lane.session() != place.session)
      lane.begin_session(place.session, place.workers);
    else if (lane.workers() != place.workers)
      fail(ErrorCode::kPeer, "tables: the run has ", lane.workers(), " workers, not ",
           place.workers);
    lane.begin_worker(place.worker);
  }
  if (place.session > newest || ended_.size() != static_cast<size_t>(place.workers))
    ended_.assign(static_cast<size_t>(place.workers), 0);
  is_over_ = false;
  ended_[static_cast<size_t>(place.worker)] = 0;
  BodyWriter out;
  for (const Lane& lane : lanes_) out.add(lane.events(place.worker));
  return {.kind = Kind::kHello,
          .lane = static_cast<uint32_t>(range_.first),
          .worker = static_cast<uint32_t>(place.worker),
          .sequence = place.session,
          .body = out.take()};
}

void Server::take(Message message, Lane::Answers& answers) {
  if (message.kind == Kind::kBye) {
    if (message.worker >= ended_.size()) fail(ErrorCode::kPeer, "tables: an unknown worker");
    ended_[message.worker] = 1;
    for (Lane& lane : lanes_) lane.end_worker(static_cast<int>(message.worker), answers);
    is_over_ = std::all_of(ended_.begin(), ended_.end(), [](char ended) { return ended != 0; });
    if (!is_over_) return;
    for (Lane& lane : lanes_) lane.end();
    std::error_code ignored;  // other servers may have lanes there
    std::filesystem::remove(std::filesystem::path(options_.output) / kServersFolder, ignored);
    return;
  }
  const int64_t lane = message.lane;
  if (lane < range_.first || lane >= range_.second)
    fail(ErrorCode::kPeer, "tables: lane ", lane, " is not one of server ", options_.index);
  lanes_[static_cast<size_t>(lane - range_.first)].take(std::move(message), answers);
}

std::vector<LaneState> read_hello(const Message& message) {
  BodyReader in(message.body);
  std::vector<LaneState> out;
  while (!in.at_end()) out.push_back({in.take<uint64_t>()});
  return out;
}

void rethrow(const Message& message) {
  BodyReader in(message.body);
  const auto code = in.take<uint8_t>();
  std::string text = in.take_text();
  for (char& c : text)
    if (c == '\n') c = ' ';
  const bool is_known = (code >= 1 && code <= static_cast<uint8_t>(ErrorCode::kPeer)) ||
                        code == static_cast<uint8_t>(ErrorCode::kInternal);
  throw Error(is_known ? static_cast<ErrorCode>(code) : ErrorCode::kPeer, std::move(text));
}

Message error_message(const Error& error) {
  BodyWriter out;
  out.add(static_cast<uint8_t>(error.code()));
  out.add_text(error.message());
  return {.kind = Kind::kError, .body = out.take()};
}

}  // namespace paddle::ps
