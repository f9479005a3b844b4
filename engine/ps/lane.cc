#include "ps/lane.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"

namespace paddle::ps {

namespace fs = std::filesystem;
using program::RowTable;

namespace {

/// Messages of a worker that wait for an event: some, and its questions for rows of later steps.
constexpr size_t kMaxDeferred = 8 + kMaxAhead;
/// The table of a declaration, and what the config of its worker said of tables.
struct Declaration {
  program::TableSpec spec;
  uint64_t seed = 0;
  TableSettings settings;
};

Declaration read_declaration(std::span<const std::byte> bytes) {
  BodyReader in(bytes);
  Declaration out;
  out.seed = in.take<uint64_t>();
  out.spec.path = in.take_text();
  out.spec.width = in.take<int64_t>();
  out.spec.dtype = static_cast<DType>(in.take<uint8_t>());
  out.spec.key = static_cast<DType>(in.take<uint8_t>());
  const auto kind = in.take<uint8_t>();
  lang::Initializer& init = out.spec.init;
  if (kind > static_cast<uint8_t>(lang::Initializer::Kind::kUniform))
    reject_message("a table begins in an unknown way");
  init.kind = static_cast<lang::Initializer::Kind>(kind);
  init.a = in.take<double>();
  init.b = in.take<double>();
  init.factor = in.take<double>();
  constexpr uint64_t kMaxSections = 16;
  const auto sections = in.take<uint64_t>();
  if (sections > kMaxSections) reject_message("a table has too many settings");
  for (uint64_t i = 0; i < sections; ++i) {
    std::string name = in.take_text();
    out.settings.emplace_back(std::move(name), in.take_text());
  }
  in.end();
  constexpr int64_t kMaxWidth = int64_t{1} << 20;
  const DType dtype = out.spec.dtype, key = out.spec.key;
  if (out.spec.width < 1 || out.spec.width > kMaxWidth ||
      (dtype != DType::kF32 && dtype != DType::kF64) || (key != DType::kI64 && key != DType::kU64))
    reject_message("a table has another width or type than tables have");
  return out;
}

}  // namespace

std::vector<std::byte> declaration_of(const program::TableSpec& declared, uint64_t seed,
                                      const TableSettings& settings) {
  BodyWriter out;
  out.add(seed);
  out.add_text(declared.path);
  out.add(declared.width);
  out.add(static_cast<uint8_t>(declared.dtype));
  out.add(static_cast<uint8_t>(declared.key));
  out.add(static_cast<uint8_t>(declared.init.kind));
  out.add(declared.init.a);
  out.add(declared.init.b);
  out.add(declared.init.factor);
  out.add<uint64_t>(settings.size());
  for (const auto& [name, text] : settings) {
    out.add_text(name);
    out.add_text(text);
  }
  return out.take();
}

Lane::Lane(LaneOptions options) : options_(std::move(options)) {
  if (const auto& watched = options_.watched) {
    const auto [first, last] = shards();
    const int shard = tables::shard_of(watched->key);
    if (shard >= first && shard < last)
      watch_.emplace(*watched, (fs::path(options_.output) / kWatchFile).string());
  }
  if (options_.log_folder.empty()) return;
  log_.emplace(options_.log_folder, options_.syncs_log);
  try {
    restore();
  } catch (const Error& e) {
    // Workers of another run do not need it.
    problem_ = e.message();
    state_ = {};
    tables_.clear();
    workers_.clear();
    log_.emplace(options_.log_folder, options_.syncs_log);
  }
}

void Lane::restore() {
  const bool is_there = log_->restore([&](SnapshotReader& in) { restore_state(in); },
                                      [&](uint16_t kind, std::span<const std::byte> body) {
                                        execute(static_cast<Kind>(kind), body);
                                      });
  if (is_there) reopen_order();
}

void Lane::restore_state(SnapshotReader& in) {
  const auto read_list = [&](auto& list) {
    const std::vector<std::byte> bytes = in.take_bytes();
    list.resize(bytes.size() / sizeof list[0]);
    if (!list.empty()) std::memcpy(list.data(), bytes.data(), list.size() * sizeof list[0]);
  };
  state_.session = in.take<uint64_t>();
  state_.workers = in.take<int32_t>();
  read_list(state_.events);
  read_list(state_.steps);
  if (state_.workers < 0 || state_.events.size() != static_cast<size_t>(state_.workers) ||
      state_.steps.size() != state_.events.size())
    fail(ErrorCode::kModel, "a snapshot of a lane is of other workers");
  workers_.resize(state_.events.size());
  state_.order_start = in.take<int64_t>();
  state_.earlier_order = in.take<int64_t>();
  state_.ordered = in.take<uint64_t>();
  state_.last_ordered = in.take<OrderEntry>();
  state_.adds = in.take<uint64_t>();
  state_.is_loading = in.take<uint8_t>() != 0;
  state_.sweeps = in.take<int32_t>();
  state_.removed = in.take_bytes();
  read_list(state_.squares);
  const auto tables = in.take<uint64_t>();
  for (uint64_t i = 0; i < tables; ++i) {
    open_table(in.take_bytes());
    Entry& entry = tables_.back();
    entry.removed.rows = in.take<int64_t>();
    entry.removed.waiting = in.take<int64_t>();
    entry.table->read_state([&](std::span<std::byte> bytes) { in.read(bytes); });
  }
}

void Lane::write_snapshot() {
  log_->replace([&](SnapshotWriter& out) {
    out.add(state_.session);
    out.add(static_cast<int32_t>(state_.workers));
    out.add_bytes(std::as_bytes(std::span(state_.events)));
    out.add_bytes(std::as_bytes(std::span(state_.steps)));
    out.add(state_.order_start);
    out.add(state_.earlier_order);
    out.add(state_.ordered);
    out.add(state_.last_ordered);
    out.add(state_.adds);
    out.add(static_cast<uint8_t>(state_.is_loading));
    out.add(static_cast<int32_t>(state_.sweeps));
    out.add_bytes(state_.removed);
    out.add_bytes(std::as_bytes(std::span(state_.squares)));
    out.add<uint64_t>(tables_.size());
    for (const Entry& entry : tables_) {
      out.add_bytes(entry.declaration);
      out.add(entry.removed.rows);
      out.add(entry.removed.waiting);
      entry.table->write_state([&](std::span<const std::byte> bytes) { out.write(bytes); });
    }
  });
}

void Lane::begin_session(uint64_t session, int workers) {
  state_ = {};
  state_.session = session;
  state_.workers = workers;
  state_.events.assign(static_cast<size_t>(workers), 0);
  state_.steps.assign(static_cast<size_t>(workers), 0);
  order_.reset();
  tables_.clear();
  workers_.assign(static_cast<size_t>(workers), {});
  is_merged_ = false;
  merged_.clear();
  next_squares_.clear();
  arrived_.clear();
  replayed_fence_.reset();
  if (options_.replay)
    replay_.emplace(options_.replay->folder, options_.lane, options_.replay->from,
                    options_.replay->until);
  problem_.clear();
  has_ended_ = false;
  if (watch_) watch_->begin();
  if (!log_) return;
  log_->remove();
  write_snapshot();
}

void Lane::begin_worker(int worker) {
  workers_.at(static_cast<size_t>(worker)) = {};
  std::erase_if(arrived_, [&](const auto& each) { return each.first == worker; });
  // Answers may have been lost.
  if (order_ && !replay_) order_->restart();
}

void Lane::end() {
  if (order_) order_->end();
  if (log_) log_->remove();
}

Lane::Entry& Lane::entry(uint32_t table) {
  if (table >= tables_.size()) reject_message("a message is about a table that was not opened");
  return tables_[table];
}

Message Lane::answer_to(const Message& message, Kind kind, std::vector<std::byte> body) const {
  return {kind, message.table, message.lane, message.worker, message.sequence, std::move(body)};
}

void Lane::take(Message message, Answers& answers) {
  if (message.worker >= workers_.size())
    reject_message("a message of worker ", message.worker, ", the run has ", workers_.size());
  if (!handle(message, answers)) {
    if (has_ended_) return add_end(message.worker, answers);
    std::vector<Message>& deferred = workers_[message.worker].deferred;
    if (deferred.size() >= kMaxDeferred)
      reject_message("worker ", message.worker, " does not wait");
    deferred.push_back(std::move(message));
    return;
  }
  handle_deferred(answers);
}

void Lane::end_worker(int worker, Answers& answers) {
  has_ended_ = true;
  for (size_t other = 0; other < workers_.size(); ++other)
    if (static_cast<int>(other) != worker && !workers_[other].deferred.empty())
      add_end(static_cast<uint32_t>(other), answers);
}

void Lane::add_end(uint32_t worker, Answers& answers) const {
  BodyWriter out;
  out.add(static_cast<uint8_t>(ErrorCode::kPeer));
  out.add_text("another worker has ended the run");
  answers.push_back({.kind = Kind::kError,
                     .lane = static_cast<uint32_t>(options_.lane),
                     .worker = worker,
                     .body = out.take()});
}

void Lane::handle_deferred(Answers& answers) {
  for (bool again = true; again;) {
    again = false;
    for (Worker& worker : workers_)
      for (size_t i = 0; i < worker.deferred.size(); ++i) {
        if (!handle(worker.deferred[i], answers)) continue;
        worker.deferred.erase(worker.deferred.begin() + static_cast<ptrdiff_t>(i--));
        again = true;
      }
  }
}

bool Lane::handle(Message& message, Answers& answers) {
  const uint64_t sequence = message.sequence, events = state_.events[message.worker];
  const auto is_after = [&] { return BodyReader(message.body).take<uint64_t>() <= events; };
  switch (message.kind) {
    case Kind::kOpen:
      open(message, answers);
      return true;
    case Kind::kAsk:
      return is_after() && ask(message, answers);
    case Kind::kPush:
      if (is_next_event(message)) push(message);
      return true;
    case Kind::kSquares:
      return add_squares_of(message, answers);
    case Kind::kUpdate:
      return update(message, answers);
    case Kind::kFence:
    case Kind::kDay:
    case Kind::kFinish:
    case Kind::kMark:
    case Kind::kLoad:
    case Kind::kLoaded:
      return arrive(message, answers);
    case Kind::kAdd:
      if (message.worker != 0 || !state_.is_loading || sequence > state_.adds + 1)
        reject_message("rows come at the wrong time");
      if (sequence == state_.adds + 1) {
        execute(Kind::kAdd, message.body);
        if (log_) log_->add(static_cast<uint16_t>(Kind::kAdd), message.body);
      }
      answers.push_back(answer_to(message, Kind::kAdded));
      return true;
    case Kind::kCount:
      if (!is_after()) return false;
      answers.push_back(counts(message));
      return true;
    case Kind::kContent:
      if (!is_after()) return false;
      add_contents(message, answers);
      return true;
    case Kind::kSave:
      if (!is_after()) return false;
      answers.push_back(saved(message));
      return true;
    default:
      reject_message("a message of kind ", static_cast<int>(message.kind), " is not for a lane");
  }
}

bool Lane::is_next_event(const Message& message) const {
  const uint64_t next = state_.events[message.worker] + 1;
  if (message.sequence > next) reject_message("event ", message.sequence, " comes before ", next);
  return message.sequence == next;
}

bool Lane::add_squares_of(const Message& message, Answers& answers) {
  if (!is_sync()) reject_message("sums of gradients that workers do not add");
  if (!is_next_event(message)) {
    if (message.sequence < state_.events[message.worker])
      reject_message("sums of an event that is over");
    answers.push_back(sums(message, state_.squares));
    return true;
  }
  if (!has_all_pushed()) return false;
  merge_pushed(0, workers_.size());
  if (next_squares_.empty()) next_squares_ = merged_squares();
  answers.push_back(sums(message, next_squares_));
  return true;
}

bool Lane::ask(const Message& message, Answers& answers) {
  BodyReader in(message.body);
  in.take<uint64_t>();
  const auto step = in.take<int64_t>();
  if (is_sync() || step == 0) {
    answers.push_back(rows_for(message));
    return true;
  }
  const OrderEntry entry = ordered(OrderKind::kPull, message.worker, step);
  if (is_too_early(step) || !is_turn(entry)) return false;
  answers.push_back(rows_for(message));
  note_turn(entry, answers.back().body);
  return true;
}

bool Lane::update(const Message& message, Answers& answers) {
  if (is_next_event(message)) {
    if (is_sync()) {
      if (!has_all_pushed()) return false;
      merge_pushed(0, workers_.size());
      happen(Kind::kUpdate, update_event(message));
    } else {
      if (!workers_[message.worker].has_pushed) reject_message("an update without gradients");
      const OrderEntry entry =
          ordered(order_of_updates(), message.worker, step_of_update(message.body));
      if (!is_turn(entry)) return false;
      merge_pushed(message.worker, message.worker + 1);
      const std::vector<std::byte> event = update_event(message);
      happen(Kind::kUpdate, event);
      note_turn(entry, event);
    }
  }
  answers.push_back(answer_to(message, Kind::kDone));
  return true;
}

bool Lane::arrive(const Message& message, Answers& answers) {
  if (is_next_event(message)) {
    const std::pair arrival(static_cast<int>(message.worker), message.kind);
    for (const auto& [worker, kind] : arrived_)
      if (kind != message.kind)
        reject_message("workers ", worker, " and ", arrival.first, " differ");
    if (std::find(arrived_.begin(), arrived_.end(), arrival) == arrived_.end())
      arrived_.push_back(arrival);
    const bool is_fence = message.kind == Kind::kFence;
    const int64_t step = is_fence ? BodyReader(message.body).take<int64_t>() : 0;
    if (is_fence) check_fence(message.worker, step);
    if (arrived_.size() < workers_.size()) return false;
    arrived_.clear();
    happen(message.kind, message.body);
    if (is_fence) note_fence(step);
  }
  answers.push_back(message.kind == Kind::kFinish
                        ? answer_to(message, Kind::kRemoved, state_.removed)
                        : answer_to(message, Kind::kDone));
  return true;
}

void Lane::open(const Message& message, Answers& answers) {
  if (message.table < tables_.size()) {
    if (tables_[message.table].declaration != message.body)
      fail(ErrorCode::kConfig, "tables: workers declare the table '",
           tables_[message.table].table->spec().path, "' in different ways");
  } else {
    if (message.table != tables_.size()) reject_message("a table was left out");
    open_table(message.body);
    if (log_) log_->add(static_cast<uint16_t>(Kind::kOpen), message.body);
  }
  answers.push_back(answer_to(message, Kind::kDone));
}

void Lane::open_table(std::span<const std::byte> bytes) {
  Declaration declared = read_declaration(bytes);
  for (const auto& setting : declared.settings)
    if (std::find(options_.settings.begin(), options_.settings.end(), setting) ==
        options_.settings.end())
      fail(ErrorCode::kConfig, "tables: the config of a worker states another '", setting.first,
           "' than that of the server");
  Entry entry;
  entry.declaration.assign(bytes.begin(), bytes.end());
  entry.table = options_.open(std::move(declared.spec), declared.seed);
  if (log_ && !entry.table->has_state())
    fail(ErrorCode::kConfig, "tables: rows of the kind of the table '", entry.table->spec().path,
         "' cannot be logged; expected parameter_server.durability: none");
  tables_.push_back(std::move(entry));
}

Message Lane::rows_for(const Message& message) {
  struct Asked {
    const Entry* entry;
    program::MissingRow missing;
    std::vector<uint64_t> keys;
  };
  BodyReader in(message.body);
  in.take<uint64_t>();
  in.take<int64_t>();
  std::vector<Asked> asked;
  size_t bytes = 0;
  while (!in.at_end()) {
    const Entry& of = entry(in.take<uint32_t>());
    const auto missing =
        in.take_flag() ? program::MissingRow::kInitial : program::MissingRow::kZero;
    asked.push_back({&of, missing, in.take_list<uint64_t>()});
    bytes += asked.back().keys.size() * of.table->row_bytes();
    if (bytes > kMaxMessage) reject_message("rows of ", bytes, " bytes are too many for a message");
  }
  std::vector<std::byte> rows(bytes);
  size_t at = 0;
  for (const Asked& each : asked) {
    each.entry->table->read(each.keys, each.missing, rows.data() + at);
    at += each.keys.size() * each.entry->table->row_bytes();
  }
  return answer_to(message, Kind::kRows, std::move(rows));
}

void Lane::push(Message& message) {
  Worker& worker = workers_[message.worker];
  if (worker.has_pushed || is_merged_) return;
  Worker pushed;
  pushed.body = std::move(message.body);
  pushed.pushed.resize(tables_.size());
  BodyReader in(pushed.body);
  while (!in.at_end()) {
    const auto table = in.take<uint32_t>();
    const Entry& of = entry(table);
    if (pushed.pushed[table]) reject_message("two pushes for one table");
    Pushed& rows = pushed.pushed[table].emplace();
    rows.has_gradient = in.take_flag();
    rows.counting = in.take<uint64_t>();
    rows.keys = in.take_list<uint64_t>();
    if (rows.counting > rows.keys.size()) reject_message("a push has more gradients than keys");
    const auto [first, last] = shards();
    for (const uint64_t key : rows.keys)
      if (const int shard = tables::shard_of(key); shard < first || shard >= last)
        reject_message("a push has keys of another lane");
    if (!rows.has_gradient) continue;
    rows.rows = in.take_bytes(rows.counting * of.table->row_bytes());
    if (observes(of)) rows.uses = in.take_bytes(rows.counting * sizeof(tables::KeyUse));
  }
  pushed.has_pushed = true;
  pushed.deferred = std::move(worker.deferred);
  worker = std::move(pushed);
}

}  // namespace paddle::ps
