// Tables whose rows are on servers: what this worker sends to the lanes, and takes from them.

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "train/tables/tables.h"

namespace paddle::train {

using ps::BodyReader;
using ps::BodyWriter;

namespace {

/// Rows of a checkpoint that are sent to the lanes at once.
constexpr uint64_t kSentBytes = uint64_t{8} << 20;

/// Some rows of an array.
Array rows_of(const Array& array, const std::vector<int64_t>& rows) {
  Dims shape = array.shape;
  const int64_t row = shape[0] > 0 ? array.size() / shape[0] : 0;
  shape[0] = static_cast<int64_t>(rows.size());
  Array out = Array::empty(array.dtype, shape);
  const auto bytes = static_cast<size_t>(storage_bytes(array.dtype, row));
  auto* to = static_cast<std::byte*>(out.raw());
  for (const int64_t i : rows) {
    std::memcpy(to, static_cast<const std::byte*>(array.raw()) + static_cast<size_t>(i) * bytes,
                bytes);
    to += bytes;
  }
  return out;
}

/// The same content with its arrays in memory of the host, one row after another.
TableContent packed(const TableContent& content) {
  TableContent out = content;
  const auto pack = [](Array& array) { array = array.on_host().contiguous(); };
  pack(out.keys);
  pack(out.weight);
  for (auto* columns : {&out.states, &out.statistics})
    for (auto& [name, values] : *columns) pack(values);
  return out;
}

}  // namespace

bool Tables::connect() {
  if (!connect_) return false;
  if (!client_) client_ = connect_();
  for (auto& [path, entry] : tables_) {
    if (entry.number) continue;
    entry.number = client_->open(entry.declared, store_.seed);
    const ps::UpdateOptions& updates = opening_.updates;
    if (updates.cache_bytes > 0)
      entry.cache.emplace(row_bytes(entry), updates.cache_bytes / tables_.size(),
                          updates.cache_refresh);
  }
  return true;
}

void Tables::finish_event() {
  if (event_ == 0) return;
  for (int lane = 0; lane < client_->lanes(); ++lane) client_->wait(lane, ps::Kind::kDone, event_);
  event_ = 0;
}

Tables::Question Tables::ask_servers(Which which, MissingRow missing, int64_t step) {
  divide_keys(which);
  for (auto& [path, entry] : tables_) {
    (entry.*which).step = step;
    if (step == 0) continue;
    if (entry.cache) find_cached(entry, which);
    if (has_own_rows(path)) find_own(entry, which);
  }
  Question question{client_->next_ticket()};
  for (int lane = 0; lane < client_->lanes(); ++lane) {
    BodyWriter out;
    bool is_asked = !is_geo() || step == 0;
    out.add(client_->events());
    out.add(step);
    for (const auto& [path, entry] : tables_) {
      const StepKeys& keys = entry.*which;
      const auto& numbers = asked_of(keys, lane);
      if (numbers.empty()) continue;
      is_asked = true;
      out.add(*entry.number);
      out.add(static_cast<uint8_t>(missing_of(path, missing) == MissingRow::kInitial));
      out.add<uint64_t>(numbers.size());
      out.reserve(out.bytes().size() + numbers.size() * sizeof(uint64_t));
      for (const int64_t number : numbers) out.add(keys.index.keys()[static_cast<size_t>(number)]);
    }
    if (!is_asked) continue;
    question.lanes.push_back(lane);
    client_->add(lane, ps::Kind::kAsk, 0, question.ticket, out.take());
  }
  client_->flush();
  return question;
}

void Tables::find_cached(Entry& entry, Which which) const {
  StepKeys& keys = entry.*which;
  const auto all = keys.index.keys();
  const size_t bytes = row_bytes(entry);
  keys.rows.resize(all.size() * bytes);
  keys.misses.assign(keys.sent.size(), {});
  for (size_t owner = 0; owner < keys.sent.size(); ++owner)
    for (const int64_t number : keys.sent[owner]) {
      const auto at = static_cast<size_t>(number);
      if (const std::byte* const row = entry.cache->find(all[at], keys.step))
        std::memcpy(keys.rows.data() + at * bytes, row, bytes);
      else
        keys.misses[owner].push_back(number);
    }
}

void Tables::take_rows(Which which, const Question& question) {
  // Rows of asynchronous runs do not wait for the gradients before them.
  if (!is_async()) finish_event();
  for (auto& [path, entry] : tables_) {
    StepKeys& keys = entry.*which;
    keys.rows.resize(keys.index.keys().size() * row_bytes(entry));
    keys.fetched = keys.index.keys().size();
  }
  for (const int lane : question.lanes) {
    const ps::Message message = client_->wait(lane, ps::Kind::kRows, question.ticket);
    BodyReader in(message.body);
    for (auto& [path, entry] : tables_) {
      StepKeys& keys = entry.*which;
      const size_t bytes = row_bytes(entry);
      const auto& numbers = asked_of(keys, lane);
      const auto rows = in.take_bytes(numbers.size() * bytes);
      for (size_t i = 0; i < numbers.size(); ++i)
        std::memcpy(keys.rows.data() + static_cast<size_t>(numbers[i]) * bytes,
                    rows.data() + i * bytes, bytes);
      if (!entry.cache || keys.step == 0) continue;
      for (size_t i = 0; i < numbers.size(); ++i)
        entry.cache->put(keys.index.keys()[static_cast<size_t>(numbers[i])],
                         rows.data() + i * bytes, keys.step);
    }
    in.end();
  }
  for (auto& [path, entry] : tables_)
    if (has_own_rows(path) && (entry.*which).step > 0) take_own(entry, which);
}

void Tables::drop_answers() {
  if (client_ && !ahead_.empty()) {
    finish_event();
    for (const Ahead& each : ahead_)
      for (const int lane : each.question.lanes)
        client_->wait(lane, ps::Kind::kRows, each.question.ticket);
  }
  ahead_.clear();
  for (auto& [path, entry] : tables_) entry.ahead.clear();
  announced_ = false;
}

void Tables::push_to_servers() {
  finish_event();
  event_ = client_->begin_event();
  for (int lane = 0; lane < client_->lanes(); ++lane) {
    const auto owner = static_cast<size_t>(lane);
    BodyWriter out;
    for (const auto& [path, entry] : tables_) {
      const StepKeys& keys = entry.now;
      if (!is_trained(path) || owner >= keys.sent.size()) continue;
      const auto& numbers = keys.sent[owner];
      const size_t counting = keys.sent_counting[owner];
      if (numbers.empty()) continue;
      out.add(*entry.number);
      out.add(static_cast<uint8_t>(entry.has_gradient));
      out.add<uint64_t>(counting);
      out.add<uint64_t>(numbers.size());
      for (const int64_t number : numbers) out.add(keys.index.keys()[static_cast<size_t>(number)]);
      if (!entry.has_gradient) continue;
      const size_t bytes = row_bytes(entry);
      const auto* const sums = static_cast<const std::byte*>(entry.sums.raw());
      out.reserve(out.bytes().size() + counting * bytes);
      for (size_t i = 0; i < counting; ++i)
        out.add_bytes({sums + static_cast<size_t>(numbers[i]) * bytes, bytes});
      if (!observes(entry)) continue;
      for (size_t i = 0; i < counting; ++i) {
        const auto number = static_cast<size_t>(numbers[i]);
        out.add(number < keys.uses.size() ? keys.uses[number] : tables::KeyUse{});
      }
    }
    client_->add(lane, ps::Kind::kPush, 0, event_, out.take());
  }
}

std::map<std::string, double> Tables::squares_of_servers() {
  for (int lane = 0; lane < client_->lanes(); ++lane)
    client_->add(lane, ps::Kind::kSquares, 0, event_, {});
  std::vector<std::vector<double>> by_table(tables_.size());
  for (auto& each : by_table) each.resize(tables::kShards);
  for (int lane = 0; lane < client_->lanes(); ++lane) {
    const auto [first, last] = tables::shards_of_part(lane, client_->lanes());
    const ps::Message message = client_->wait(lane, ps::Kind::kSums, event_);
    const auto sums = BodyReader(message.body).take_list<double>();
    const auto shards = static_cast<size_t>(last - first);
    if (sums.size() != by_table.size() * shards)
      fail(ErrorCode::kPeer, "tables: the sums of lane ", lane, " are of other tables");
    for (size_t table = 0; table < by_table.size(); ++table)
      std::copy_n(sums.begin() + static_cast<ptrdiff_t>(table * shards), shards,
                  by_table[table].begin() + first);
  }
  std::map<std::string, double> out;
  for (const auto& [path, entry] : tables_) {
    if (!entry.has_gradient) continue;
    double& total = out[path] = 0;
    for (const double sum : by_table.at(*entry.number)) total += sum;
  }
  return out;
}

void Tables::update_servers(const RowUpdate& inputs, const std::map<std::string, double>& scales) {
  BodyWriter body;
  body.add(inputs.rate);
  body.add(inputs.step);
  body.add(day_);
  body.add(static_cast<uint8_t>(inputs.bound.has_value()));
  if (inputs.bound) body.add(*inputs.bound);
  for (const auto& [path, entry] : tables_) {
    const auto scale = scales.find(path);
    if (scale == scales.end() && !inputs.scale) continue;
    body.add(*entry.number);
    body.add(scale == scales.end() ? *inputs.scale : scale->second);
  }
  for (int lane = 0; lane < client_->lanes(); ++lane)
    client_->add(lane, ps::Kind::kUpdate, 0, event_, body.bytes());
  client_->flush();
  if (!announced_) return;
  announced_ = false;
  const int64_t step = trained_ + 1;
  keep_ahead(step, ask_servers(&Entry::next, missing_, is_async() ? step : 0));
}

void Tables::finish_removal_on_servers() {
  finish_event();
  std::vector<RowTable::Removed> removed(tables_.size());
  std::vector<int64_t> left(tables_.size());
  for (const ps::Message& each : client_->happen(ps::Kind::kFinish)) {
    BodyReader in(each.body);
    for (size_t table = 0; table < removed.size(); ++table) {
      removed[table].rows += in.take<int64_t>();
      removed[table].waiting += in.take<int64_t>();
      left[table] += in.take<int64_t>();
    }
  }
  for (const auto& [path, entry] : tables_)
    note_removal(path, removed.at(*entry.number), left.at(*entry.number));
}

RowTable::Removed Tables::count_all(const Entry& entry) {
  if (!connect())
    return {exchange_.sum(entry.table->count()), exchange_.sum(entry.table->waiting_count())};
  finish_event();
  RowTable::Removed out;
  for (const ps::Message& each : client_->ask(ps::Kind::kCount, ps::Kind::kCounts)) {
    BodyReader in(each.body);
    in.take_bytes(size_t{*entry.number} * 2 * sizeof(int64_t));
    out.rows += in.take<int64_t>();
    out.waiting += in.take<int64_t>();
  }
  return out;
}

std::vector<TableContent> Tables::pieces_on_servers(const Entry& entry, bool is_waiting,
                                                    bool states) {
  std::vector<TableContent> out;
  if (!exchange_.is_root()) return out;
  const std::byte which[] = {std::byte{is_waiting}, std::byte{states}};
  for (const ps::Message& each :
       client_->ask(ps::Kind::kContent, ps::Kind::kContents, *entry.number, which)) {
    BodyReader in(each.body);
    in.take_flag();
    in.take<uint32_t>();
    TableContent content = in.take_content();
    if (is_waiting)
      program::check_content(program::waiting_spec(entry.table->spec()), content, "a server");
    else
      program::check_content(entry.table->spec(), content, "a server");
    out.push_back(std::move(content));
  }
  return out;
}

void Tables::restore_servers(const Contents& contents) {
  finish_event();
  BodyWriter body;
  body.add(store_.seed);
  client_->happen(ps::Kind::kLoad, body.take());
  if (exchange_.is_root()) {
    std::vector<uint64_t> sent(static_cast<size_t>(client_->lanes()), 0);
    for (const auto& [path, parts] : contents) {
      const uint32_t number = *tables_.at(path).number;
      for (const TableContent& part : parts.rows) send_rows(number, false, part, sent);
      for (const TableContent& part : parts.waiting) send_rows(number, true, part, sent);
    }
  }
  client_->happen(ps::Kind::kLoaded);
}

void Tables::send_rows(uint32_t table, bool is_waiting, const TableContent& content,
                       std::vector<uint64_t>& sent) {
  const TableContent all = packed(content);
  const int64_t count = all.keys.shape[0];
  const auto* const keys = static_cast<const uint64_t*>(all.keys.raw());
  const auto row = static_cast<uint64_t>(storage_bytes(all.weight.dtype, all.weight.shape[1]) *
                                         static_cast<int64_t>(1 + all.states.size()));
  const auto step =
      static_cast<int64_t>(std::max<uint64_t>(1, kSentBytes / std::max<uint64_t>(1, row)));
  for (int64_t begin = 0; begin < count; begin += step) {
    std::vector<std::vector<int64_t>> rows(sent.size());
    for (int64_t i = begin; i < std::min(count, begin + step); ++i)
      rows[static_cast<size_t>(client_->lane_of(keys[i]))].push_back(i);
    for (size_t lane = 0; lane < rows.size(); ++lane) {
      if (rows[lane].empty()) continue;
      TableContent some;
      some.keys = rows_of(all.keys, rows[lane]);
      some.weight = rows_of(all.weight, rows[lane]);
      for (const auto& [name, values] : all.states)
        some.states.emplace_back(name, rows_of(values, rows[lane]));
      for (const auto& [name, values] : all.statistics)
        some.statistics.emplace_back(name, rows_of(values, rows[lane]));
      BodyWriter out;
      out.add(table);
      out.add(static_cast<uint8_t>(is_waiting));
      out.add_content(some);
      client_->add(static_cast<int>(lane), ps::Kind::kAdd, table, ++sent[lane], out.take());
    }
    client_->flush();
    for (size_t lane = 0; lane < rows.size(); ++lane)
      if (!rows[lane].empty()) client_->wait(static_cast<int>(lane), ps::Kind::kAdded, sent[lane]);
  }
}

}  // namespace paddle::train
