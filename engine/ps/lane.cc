#include "ps/lane.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"

namespace paddle::ps {

namespace fs = std::filesystem;
using program::RowTable;

namespace {

/// Updates after the end of a day in which removed rows are taken out of memory.
constexpr int kSweeps = 128;
/// Messages of a worker that wait for an event.
constexpr size_t kMaxDeferred = 8;
/// Bytes of rows in one answer of several.
constexpr uint64_t kContentBytes = uint64_t{16} << 20;

template <class... Parts>
[[noreturn]] void reject(const Parts&... parts) {
  fail(ErrorCode::kPeer, "tables: ", parts...);
}

/// Rows [begin, end) of an array.
Array rows_of(const Array& array, int64_t begin, int64_t end) {
  Dims shape = array.shape;
  const int64_t row = shape[0] > 0 ? array.size() / shape[0] : 0;
  shape[0] = end - begin;
  Array out = Array::empty(array.dtype, shape);
  const auto bytes = static_cast<size_t>(storage_bytes(array.dtype, row));
  if (end > begin)
    std::memcpy(out.raw(),
                static_cast<const std::byte*>(array.raw()) + static_cast<size_t>(begin) * bytes,
                static_cast<size_t>(end - begin) * bytes);
  return out;
}

tables::TableContent rows_of(const tables::TableContent& content, int64_t begin, int64_t end) {
  tables::TableContent out;
  out.keys = rows_of(content.keys, begin, end);
  out.weight = rows_of(content.weight, begin, end);
  for (const auto& [name, values] : content.states)
    out.states.emplace_back(name, rows_of(values, begin, end));
  for (const auto& [name, values] : content.statistics)
    out.statistics.emplace_back(name, rows_of(values, begin, end));
  return out;
}

/// Rejects rows that are not those of a table of this declaration.
void check_rows(const program::TableSpec& spec, const tables::TableContent& content) {
  const Dims one = {content.keys.shape[0]}, row = {content.keys.shape[0], spec.width};
  const auto check = [](const Array& array, DType dtype, const Dims& shape) {
    if (array.dtype != dtype || array.shape != shape) reject("rows are not those of the table");
  };
  check(content.keys, spec.key, one);
  check(content.weight, spec.dtype, row);
  for (const auto& [name, values] : content.states) check(values, spec.dtype, row);
  for (const auto& [name, values] : content.statistics) check(values, DType::kF32, one);
}

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
    reject("a table begins in an unknown way");
  init.kind = static_cast<lang::Initializer::Kind>(kind);
  init.a = in.take<double>();
  init.b = in.take<double>();
  init.factor = in.take<double>();
  constexpr uint64_t kMaxSections = 16;
  const auto sections = in.take<uint64_t>();
  if (sections > kMaxSections) reject("a table has too many settings");
  for (uint64_t i = 0; i < sections; ++i) {
    std::string name = in.take_text();
    out.settings.emplace_back(std::move(name), in.take_text());
  }
  in.end();
  constexpr int64_t kMaxWidth = int64_t{1} << 20;
  const DType dtype = out.spec.dtype, key = out.spec.key;
  if (out.spec.width < 1 || out.spec.width > kMaxWidth ||
      (dtype != DType::kF32 && dtype != DType::kF64) || (key != DType::kI64 && key != DType::kU64))
    reject("a table has another width or type than tables have");
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
  log_->restore(
      [&](SnapshotReader& in) {
        state_.session = in.take<uint64_t>();
        state_.workers = in.take<int32_t>();
        state_.events = in.take<uint64_t>();
        state_.adds = in.take<uint64_t>();
        state_.is_loading = in.take<uint8_t>() != 0;
        state_.sweeps = in.take<int32_t>();
        state_.removed = in.take_bytes();
        const std::vector<std::byte> squares = in.take_bytes();
        state_.squares.resize(squares.size() / sizeof(double));
        if (!squares.empty()) std::memcpy(state_.squares.data(), squares.data(), squares.size());
        const auto tables = in.take<uint64_t>();
        for (uint64_t i = 0; i < tables; ++i) {
          open_table(in.take_bytes());
          Entry& entry = tables_.back();
          entry.removed.rows = in.take<int64_t>();
          entry.removed.waiting = in.take<int64_t>();
          entry.table->read_state([&](std::span<std::byte> bytes) { in.read(bytes); });
        }
      },
      [&](uint16_t kind, std::span<const std::byte> body) {
        execute(static_cast<Kind>(kind), body);
      });
  workers_.resize(static_cast<size_t>(state_.workers));
}

void Lane::write_snapshot() {
  log_->replace([&](SnapshotWriter& out) {
    out.add(state_.session);
    out.add(static_cast<int32_t>(state_.workers));
    out.add(state_.events);
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
  tables_.clear();
  workers_.assign(static_cast<size_t>(workers), {});
  is_merged_ = false;
  merged_.clear();
  next_squares_.clear();
  arrived_.clear();
  problem_.clear();
  has_ended_ = false;
  if (!log_) return;
  log_->remove();
  write_snapshot();
}

void Lane::begin_worker(int worker) {
  workers_.at(static_cast<size_t>(worker)) = {};
  std::erase_if(arrived_, [&](const auto& each) { return each.first == worker; });
}

void Lane::end() {
  if (log_) log_->remove();
}

Lane::Entry& Lane::entry(uint32_t table) {
  if (table >= tables_.size()) reject("a message is about a table that was not opened");
  return tables_[table];
}

Message Lane::answer_to(const Message& message, Kind kind, std::vector<std::byte> body) const {
  return {kind, message.table, message.lane, message.worker, message.sequence, std::move(body)};
}

void Lane::take(Message message, Answers& answers) {
  if (message.worker >= workers_.size())
    reject("a message of worker ", message.worker, ", the run has ", workers_.size());
  const uint64_t before = state_.events;
  if (!handle(message, answers)) {
    if (has_ended_) return add_end(message.worker, answers);
    std::vector<Message>& deferred = workers_[message.worker].deferred;
    if (deferred.size() >= kMaxDeferred) reject("worker ", message.worker, " does not wait");
    deferred.push_back(std::move(message));
    return;
  }
  if (state_.events != before || is_merged_) handle_deferred(answers);
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
        const uint64_t before = state_.events;
        if (!handle(worker.deferred[i], answers)) continue;
        worker.deferred.erase(worker.deferred.begin() + static_cast<ptrdiff_t>(i--));
        again = again || state_.events != before;
      }
  }
}

bool Lane::handle(Message& message, Answers& answers) {
  const uint64_t sequence = message.sequence, next = state_.events + 1;
  const auto is_after = [&] { return BodyReader(message.body).take<uint64_t>() <= state_.events; };
  const auto check_event = [&] {
    if (sequence > next) reject("event ", sequence, " comes before ", next);
  };
  switch (message.kind) {
    case Kind::kOpen:
      open(message, answers);
      return true;
    case Kind::kAsk:
      if (!is_after()) return false;
      answers.push_back(rows_for(message));
      return true;
    case Kind::kPush:
      check_event();
      if (sequence == next) push(message);
      return true;
    case Kind::kSquares:
      check_event();
      if (sequence < state_.events) reject("sums of an event that is over");
      if (sequence == state_.events) {
        answers.push_back(sums(message, state_.squares));
        return true;
      }
      if (!has_all_pushed()) return false;
      merge_pushed();
      if (next_squares_.empty()) next_squares_ = merged_squares();
      answers.push_back(sums(message, next_squares_));
      return true;
    case Kind::kUpdate:
      check_event();
      if (sequence == next) {
        if (!has_all_pushed()) return false;
        merge_pushed();
        happen(Kind::kUpdate, update_event(message));
      }
      answers.push_back(answer_to(message, Kind::kDone));
      return true;
    case Kind::kDay:
    case Kind::kFinish:
    case Kind::kMark:
    case Kind::kLoad:
    case Kind::kLoaded:
      check_event();
      if (sequence == next) {
        const std::pair arrival(static_cast<int>(message.worker), message.kind);
        for (const auto& [worker, kind] : arrived_)
          if (kind != message.kind) reject("workers ", worker, " and ", arrival.first, " differ");
        if (std::find(arrived_.begin(), arrived_.end(), arrival) == arrived_.end())
          arrived_.push_back(arrival);
        if (arrived_.size() < workers_.size()) return false;
        happen(message.kind, message.body);
      }
      answers.push_back(message.kind == Kind::kFinish
                            ? answer_to(message, Kind::kRemoved, state_.removed)
                            : answer_to(message, Kind::kDone));
      return true;
    case Kind::kAdd:
      if (message.worker != 0 || !state_.is_loading || sequence > state_.adds + 1)
        reject("rows come at the wrong time");
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
      reject("a message of kind ", static_cast<int>(message.kind), " is not for a lane");
  }
}

void Lane::open(const Message& message, Answers& answers) {
  if (message.table < tables_.size()) {
    if (tables_[message.table].declaration != message.body)
      fail(ErrorCode::kConfig, "tables: workers declare the table '",
           tables_[message.table].table->spec().path, "' in different ways");
  } else {
    if (message.table != tables_.size()) reject("a table was left out");
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
  std::vector<Asked> asked;
  size_t bytes = 0;
  while (!in.at_end()) {
    const Entry& of = entry(in.take<uint32_t>());
    const auto missing =
        in.take_flag() ? program::MissingRow::kInitial : program::MissingRow::kZero;
    asked.push_back({&of, missing, in.take_list<uint64_t>()});
    bytes += asked.back().keys.size() * of.table->row_bytes();
    if (bytes > kMaxMessage) reject("rows of ", bytes, " bytes are too many for a message");
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
    if (pushed.pushed[table]) reject("two pushes for one table");
    Pushed& rows = pushed.pushed[table].emplace();
    rows.has_gradient = in.take_flag();
    rows.counting = in.take<uint64_t>();
    rows.keys = in.take_list<uint64_t>();
    if (rows.counting > rows.keys.size()) reject("a push has more gradients than keys");
    const auto [first, last] = shards();
    for (const uint64_t key : rows.keys)
      if (const int shard = tables::shard_of(key); shard < first || shard >= last)
        reject("a push has keys of another lane");
    if (!rows.has_gradient) continue;
    rows.rows = in.take_bytes(rows.counting * of.table->row_bytes());
    if (observes(of)) rows.uses = in.take_bytes(rows.counting * sizeof(tables::KeyUse));
  }
  pushed.has_pushed = true;
  pushed.deferred = std::move(worker.deferred);
  worker = std::move(pushed);
}

bool Lane::has_all_pushed() const {
  return is_merged_ || std::all_of(workers_.begin(), workers_.end(),
                                   [](const Worker& each) { return each.has_pushed; });
}

void Lane::merge_pushed() {
  if (is_merged_) return;
  merged_.assign(tables_.size(), std::nullopt);
  for (size_t table = 0; table < tables_.size(); ++table) {
    std::vector<PushedRows> by_worker(workers_.size());
    bool is_pushed = false, has_gradient = false;
    std::vector<uint64_t> inserted;
    for (size_t i = 0; i < workers_.size(); ++i) {
      const auto& pushed = workers_[i].pushed;
      if (table >= pushed.size() || !pushed[table]) continue;
      const Pushed& rows = *pushed[table];
      is_pushed = true;
      const size_t counting = rows.has_gradient ? rows.counting : 0;
      inserted.insert(inserted.end(), rows.keys.begin() + static_cast<ptrdiff_t>(counting),
                      rows.keys.end());
      if (!rows.has_gradient) continue;
      has_gradient = true;
      by_worker[i] = {std::span(rows.keys).first(counting), rows.rows.data(),
                      rows.uses.empty() ? nullptr : rows.uses.data()};
    }
    if (!is_pushed) continue;
    Merged& merged = merged_[table].emplace();
    merged.has_gradient = has_gradient;
    merged.inserted = std::move(inserted);
    if (has_gradient) merged.rows = merge(tables_[table].table->spec(), by_worker);
  }
  for (Worker& worker : workers_) {
    worker.body = {};
    worker.pushed.clear();
  }
  is_merged_ = true;
}

std::vector<double> Lane::merged_squares() const {
  const auto [first, last] = shards();
  std::vector<double> out;
  for (size_t table = 0; table < tables_.size(); ++table) {
    std::vector<double> by_shard(tables::kShards, 0);
    if (merged_[table] && merged_[table]->has_gradient)
      add_squares(tables_[table].table->spec(), merged_[table]->rows.keys,
                  merged_[table]->rows.gradients, by_shard);
    out.insert(out.end(), by_shard.begin() + first, by_shard.begin() + last);
  }
  return out;
}

Message Lane::sums(const Message& message, const std::vector<double>& squares) const {
  BodyWriter out;
  out.add_list(std::span<const double>(squares));
  return answer_to(message, Kind::kSums, out.take());
}

std::vector<std::byte> Lane::update_event(const Message& message) {
  BodyWriter out;
  out.add_list(std::span<const std::byte>(message.body));
  out.add_list(std::span<const double>(next_squares_));
  for (uint32_t table = 0; table < merged_.size(); ++table) {
    if (!merged_[table]) continue;
    const Merged& merged = *merged_[table];
    out.add(table);
    out.add(static_cast<uint8_t>(merged.has_gradient));
    out.add_list(std::span<const uint64_t>(merged.inserted));
    if (!merged.has_gradient) continue;
    out.add_list(std::span<const uint64_t>(merged.rows.keys));
    out.add_array(merged.rows.gradients);
    if (observes(tables_[table])) out.add_list(std::span<const tables::KeyUse>(merged.rows.uses));
  }
  return out.take();
}

void Lane::happen(Kind kind, std::vector<std::byte> body) {
  // An event that cannot be executed is not logged. Answers come after the log.
  execute(kind, body);
  if (log_) log_->add(static_cast<uint16_t>(kind), body);
  const bool is_long =
      log_ && log_->log_bytes() > std::max(options_.min_log_bytes, log_->snapshot_bytes());
  // A checkpoint that was loaded is not kept twice.
  if (log_ && (is_long || kind == Kind::kLoaded)) write_snapshot();
}

void Lane::execute(Kind kind, std::span<const std::byte> body) {
  BodyReader in(body);
  switch (kind) {
    case Kind::kOpen:
      open_table(body);
      return;
    case Kind::kAdd: {
      Entry& to = entry(in.take<uint32_t>());
      const bool is_waiting = in.take_flag();
      const tables::TableContent content = in.take_content();
      in.end();
      check_rows(is_waiting ? program::waiting_spec(to.table->spec()) : to.table->spec(), content);
      if (is_waiting)
        to.table->add_waiting(content, shards());
      else
        to.table->add(content, shards());
      ++state_.adds;
      return;
    }
    case Kind::kUpdate:
      execute_update(in);
      break;
    case Kind::kDay: {
      const auto day = in.take<int64_t>();
      for (Entry& each : tables_) {
        each.removed = {};
        each.table->begin_removal(day, shards());
      }
      state_.sweeps = kSweeps;
      break;
    }
    case Kind::kFinish: {
      sweep(tables::kShards);
      state_.sweeps = 0;
      BodyWriter out;
      for (const Entry& each : tables_) {
        out.add(each.removed.rows);
        out.add(each.removed.waiting);
        out.add(each.table->count());
      }
      state_.removed = out.take();
      break;
    }
    case Kind::kMark:
      while (!in.at_end()) entry(in.take<uint32_t>()).table->begin_changes();
      break;
    case Kind::kLoad: {
      const auto seed = in.take<uint64_t>();
      for (Entry& each : tables_) each.table->clear(seed);
      state_.sweeps = 0;
      state_.adds = 0;
      state_.is_loading = true;
      break;
    }
    case Kind::kLoaded:
      state_.is_loading = false;
      break;
    default:
      reject("an event of kind ", static_cast<int>(kind));
  }
  ++state_.events;
  is_merged_ = false;
  merged_.clear();
  next_squares_.clear();
  arrived_.clear();
  for (Worker& worker : workers_) worker.has_pushed = false;
}

void Lane::execute_update(BodyReader in) {
  const auto scalars = in.take_list<std::byte>();
  BodyReader of(scalars);
  program::RowUpdate inputs;
  inputs.rate = of.take<double>();
  inputs.step = of.take<int64_t>();
  const auto day = of.take<int64_t>();
  if (of.take_flag()) inputs.bound = of.take<double>();
  std::vector<std::optional<double>> scales(tables_.size());
  while (!of.at_end()) {
    const auto table = of.take<uint32_t>();
    entry(table);
    scales[table] = of.take<double>();
  }
  state_.squares = in.take_list<double>();
  while (!in.at_end()) {
    const auto table = in.take<uint32_t>();
    Entry& to = entry(table);
    const bool has_gradient = in.take_flag();
    to.table->insert(in.take_list<uint64_t>());
    if (!has_gradient) continue;
    const auto keys = in.take_list<uint64_t>();
    Array gradients = in.take_array();
    std::vector<tables::KeyUse> uses;
    if (observes(to)) uses = in.take_list<tables::KeyUse>();
    if (!to.table->update_adds()) to.table->insert(keys);
    program::RowUpdate update = inputs;
    update.scale = scales[table];
    if (to.table->spec().policy.divides_by_show) divide_by_shows(uses, gradients);
    to.table->update(keys, gradients, update);
    if (observes(to)) to.table->observe(keys, uses, inputs.step, day);
  }
  if (state_.sweeps > 0) {
    sweep(tables::kShards / kSweeps);
    --state_.sweeps;
  }
}

void Lane::sweep(int shards) {
  for (Entry& each : tables_) {
    const RowTable::Removed some = each.table->sweep(shards);
    each.removed.rows += some.rows;
    each.removed.waiting += some.waiting;
  }
}

Message Lane::counts(const Message& message) {
  BodyWriter out;
  for (const Entry& each : tables_) {
    out.add(each.table->count());
    out.add(each.table->waiting_count());
  }
  return answer_to(message, Kind::kCounts, out.take());
}

void Lane::add_contents(const Message& message, Answers& answers) {
  BodyReader in(message.body);
  in.take<uint64_t>();
  const bool is_waiting = in.take_flag(), has_states = in.take_flag();
  in.end();
  const RowTable& table = *entry(message.table).table;
  const tables::TableContent content = is_waiting ? table.waiting() : table.content(has_states);
  const int64_t count = content.keys.shape[0];
  const int64_t rows =
      std::max<int64_t>(1, static_cast<int64_t>(kContentBytes / table.payload_bytes()));
  int64_t begin = 0;
  uint32_t pieces = 0;
  do {
    const int64_t end = std::min(count, begin + rows);
    BodyWriter out;
    out.add(static_cast<uint8_t>(end == count));
    out.add(pieces++);
    out.add_content(rows_of(content, begin, end));
    answers.push_back(answer_to(message, Kind::kContents, out.take()));
    begin = end;
  } while (begin < count);
}

Message Lane::saved(const Message& message) {
  BodyReader in(message.body);
  in.take<uint64_t>();
  const auto saved = static_cast<SavedPart>(in.take<uint8_t>());
  const auto step = in.take<int64_t>();
  const fs::path below = in.take_text();
  in.end();
  if (message.worker != 0 || below.empty() || below.is_absolute() ||
      std::find(below.begin(), below.end(), "..") != below.end())
    reject("a save outside of the folder of the run");
  const std::string folder = (fs::path(options_.output) / below).string();
  const RowTable& table = *entry(message.table).table;
  const std::string part =
      saved == SavedPart::kWaiting   ? table.write_waiting(folder, shards(), step)
      : saved == SavedPart::kChanges ? table.write_changes(folder, shards(), step)
                                     : table.write(folder, shards(), step);
  BodyWriter out;
  out.add_text(part);
  return answer_to(message, Kind::kSaved, out.take());
}

}  // namespace paddle::ps
