#include "train/tables/tables.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>

#include "base/parallel.h"
#include "base/text.h"
#include "program/row_table.h"
#include "tables/row_update.h"

namespace paddle::train {

using program::table_weight;

namespace {
constexpr int64_t kRowsGrain = 4096;
}  // namespace

void Tables::open(const program::TableSpec& spec) {
  if (!rejection_.empty()) fail(ErrorCode::kConfig, "sparse_embedding: ", rejection_);
  const auto known = tables_.find(spec.path);
  if (known == tables_.end()) {
    std::unique_ptr<RowTable> table = opening_.open(spec, store_.seed);
    Entry& entry = tables_[spec.path];
    entry.table = std::move(table);
    entry.declared = spec;
    return;
  }
  const program::TableSpec& first = known->second.declared;
  const std::string begin = first.init.text();
  if (first.width != spec.width || begin != spec.init.text())
    fail(ErrorCode::kConfig, "sparse_embedding: the table '", spec.path, "' has rows of ",
         first.width, " that begin as ", begin, " elsewhere, here of ", spec.width, " as ",
         spec.init.text());
  if (first.key != spec.key)
    fail(ErrorCode::kConfig, "sparse_embedding: the table '", spec.path, "' has ", text(first.key),
         " keys elsewhere, here ", text(spec.key));
}

void Tables::add_numbers(TableUse& use,
                         const std::function<Array(const std::string& field)>& value) const {
  const tables::RowPolicy& policy = tables_.at(use.table).table->spec().policy;
  if (!policy.observes() || use.keys.shape.empty()) return;
  const auto numbers = [&](const std::optional<tables::SampleNumber>& number, double fallback) {
    const Dims shape = {use.keys.shape[0]};
    if (!number || number->field.empty()) {
      const std::vector<double> all(static_cast<size_t>(shape[0]),
                                    number ? number->constant : fallback);
      return Array::from<double>(all, shape);
    }
    Array out = value(number->field).on_host().cast(DType::kF64).contiguous();
    if (out.size() != shape[0])
      fail(ErrorCode::kData, "table '", use.table, "': the field '", number->field, "' has ",
           out.size(), " numbers for ", shape[0], " samples; statistics need one for each");
    return out;
  };
  use.shows = numbers(policy.show, 1);
  use.clicks = numbers(policy.click, 0);
}

bool Tables::is_trained(const std::string& path) const {
  return !opening_.rule->is_frozen(table_weight(path));
}

MissingRow Tables::missing_of(const std::string& path, MissingRow missing) const {
  return is_trained(path) ? missing : MissingRow::kZero;
}

void Tables::begin_step(MissingRow missing, bool trains) {
  if (is_async()) trains ? start_training() : stop_training();
  missing_ = missing;
  pushed_ = false;
  uses_.clear();
  for (auto& [path, entry] : tables_) {
    entry.now = {};
    entry.sums = {};
    entry.has_gradient = false;
  }
}

Tables::Use Tables::add_to(Entry& entry, Which which, const TableUse& use) const {
  StepKeys& keys = entry.*which;
  const bool observed = observes(entry) && use.counts;
  const Array host = use.keys.on_host();
  const Array given = (host.dtype == DType::kU64 ? host : host.cast(DType::kI64)).contiguous();
  Use out{use.table, Array::empty(DType::kI64, given.shape), use.counts};
  const auto* const key = static_cast<const uint64_t*>(given.raw());
  auto* const numbers = out.numbers.data<int64_t>();
  Array mask;
  if (use.mask.storage) mask = use.mask.on_host().contiguous();
  ensure(!mask.storage || mask.size() == given.size(), "table '", use.table,
         "': a mask of another shape");
  for (int64_t i = 0; i < given.size(); ++i) {
    if (mask.storage && !mask.data<bool>()[i]) {
      numbers[i] = -1;
      continue;
    }
    const int64_t number = numbers[i] = keys.index.add(key[i]);
    if (static_cast<size_t>(number) == keys.counts.size()) keys.counts.push_back(0);
    if (use.counts) keys.counts[static_cast<size_t>(number)] = 1;
  }
  if (!observed) return out;
  keys.uses.resize(static_cast<size_t>(keys.index.size()));
  const int64_t samples = given.shape.empty() ? 1 : given.shape[0];
  const int64_t of_sample = samples > 0 ? given.size() / samples : 0;
  const auto* const shows = use.shows.storage ? use.shows.data<double>() : nullptr;
  const auto* const clicks = use.clicks.storage ? use.clicks.data<double>() : nullptr;
  for (int64_t i = 0; i < given.size(); ++i)
    if (numbers[i] >= 0)
      keys.uses[static_cast<size_t>(numbers[i])] +=
          tables::KeyUse{1, shows ? shows[i / of_sample] : 1, clicks ? clicks[i / of_sample] : 0};
  return out;
}

size_t Tables::add(const TableUse& use) {
  uses_.push_back(add_to(tables_.at(use.table), &Entry::now, use));
  return uses_.size() - 1;
}

std::pair<int64_t, int64_t> Tables::steps_to_announce() {
  if (is_async()) start_training();
  const int64_t begins = trained_ + 1;
  const int64_t first = ahead_.empty() ? 1 : std::max<int64_t>(1, ahead_.back().step + 1 - begins);
  const int64_t ahead = is_async() ? opening_.updates.ahead : 1;
  // Rows that came before an exchange would be asked for again after it.
  if (is_geo()) return {first, std::min(ahead, next_exchange() - begins)};
  return {first, std::max<int64_t>(1, ahead)};
}

void Tables::announce(const std::vector<TableUse>& next) {
  if (is_local()) return;
  const int64_t step = trained_ + 1 + steps_to_announce().first;
  for (auto& [path, entry] : tables_) entry.next = {};
  for (const TableUse& use : next) add_to(tables_.at(use.table), &Entry::next, use);
  announced_ = !is_async() || opening_.updates.ahead == 0;
  if (announced_) return;  // they are asked for with the gradients
  keep_ahead(step, ask_servers(&Entry::next, MissingRow::kInitial, step));
}

void Tables::keep_ahead(int64_t step, Question question) {
  ahead_.push_back({step, std::move(question)});
  for (auto& [path, entry] : tables_) entry.ahead.push_back(std::exchange(entry.next, {}));
}

bool Tables::take_ahead() {
  if (ahead_.empty() || ahead_.front().step != trained_ + 1) return false;
  for (auto& [path, entry] : tables_) {
    const auto now = entry.now.index.keys(), then = entry.ahead.front().index.keys();
    ensure(std::equal(now.begin(), now.end(), then.begin(), then.end()) &&
               entry.now.counts == entry.ahead.front().counts,
           "table '", path, "': the keys of the step are not those announced");
    entry.now = std::move(entry.ahead.front());
    entry.ahead.pop_front();
  }
  const Question question = std::move(ahead_.front().question);
  ahead_.pop_front();
  if (client_) take_rows(&Entry::now, question);
  return true;
}

void Tables::fetch(bool announced) {
  if (is_local()) {
    for (auto& [path, entry] : tables_) {
      StepKeys& keys = entry.now;
      const auto some = keys.index.keys().subspan(keys.fetched);
      keys.rows.resize(keys.index.keys().size() * row_bytes(entry));
      entry.table->read(some, missing_of(path, missing_),
                        keys.rows.data() + keys.fetched * row_bytes(entry));
      keys.fetched = keys.index.keys().size();
    }
    return;
  }
  if (announced && take_ahead()) return;
  if (connect()) {
    finish_event();
    const int64_t step = is_training_ ? trained_ + 1 : 0;
    take_rows(&Entry::now, ask_servers(&Entry::now, missing_, step));
    return;
  }
  const RankMessages sent = questions(&Entry::now);
  const std::vector<size_t> begin(sent.size(), 0);
  take_questions(&Entry::now, exchange_.all_to_all(sent), begin);
  answer(&Entry::now);
}

void Tables::divide_keys(Which which) {
  const auto owners = static_cast<size_t>(client_ ? client_->lanes() : exchange_.ranks());
  for (auto& [path, entry] : tables_) {
    StepKeys& keys = entry.*which;
    const auto all = keys.index.keys();
    keys.sent.assign(owners, {});
    keys.sent_counting.assign(owners, 0);
    std::vector<size_t> owner(all.size());
    for (size_t i = 0; i < all.size(); ++i)
      owner[i] =
          static_cast<size_t>(client_ ? client_->lane_of(all[i]) : exchange_.owner_of(all[i]));
    for (const char counts : {1, 0})
      for (size_t i = 0; i < all.size(); ++i) {
        if (keys.counts[i] != counts) continue;
        keys.sent[owner[i]].push_back(static_cast<int64_t>(i));
        if (counts) ++keys.sent_counting[owner[i]];
      }
    // In the order in which owners add them.
    const bool is_signed = entry.table->spec().key == DType::kI64;
    const auto place = [&](int64_t number) {
      const uint64_t key = all[static_cast<size_t>(number)];
      return std::pair(tables::shard_of(key), tables::ordered(key, is_signed));
    };
    for (size_t i = 0; i < owners; ++i) {
      const auto counting = keys.sent[i].begin() + static_cast<ptrdiff_t>(keys.sent_counting[i]);
      std::sort(keys.sent[i].begin(), counting,
                [&](int64_t a, int64_t b) { return place(a) < place(b); });
    }
  }
}

RankMessages Tables::questions(Which which) {
  const auto ranks = static_cast<size_t>(exchange_.ranks());
  divide_keys(which);
  RankMessages out(ranks);
  for (auto& [path, entry] : tables_) {
    const StepKeys& keys = entry.*which;
    const auto all = keys.index.keys();
    for (size_t owner = 0; owner < ranks; ++owner) {
      const uint64_t counts[] = {keys.sent_counting[owner], keys.sent[owner].size()};
      append(out[owner], std::span<const uint64_t>(counts));
      for (const int64_t number : keys.sent[owner])
        append(out[owner], all.subspan(static_cast<size_t>(number), 1));
    }
  }
  return out;
}

void Tables::take_questions(Which which, const RankMessages& messages,
                            std::span<const size_t> begin) {
  const size_t ranks = messages.size();
  for (auto& [path, entry] : tables_) {
    (entry.*which).asked.assign(ranks, {});
    (entry.*which).asked_counting.assign(ranks, 0);
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    size_t at = begin[rank];
    for (auto& [path, entry] : tables_) {
      StepKeys& keys = entry.*which;
      uint64_t counts[2] = {};
      ensure(at + sizeof counts <= messages[rank].size(), "table '", path, "': a message is short");
      std::memcpy(counts, messages[rank].data() + at, sizeof counts);
      at += sizeof counts;
      const size_t bytes = counts[1] * sizeof(uint64_t);
      ensure(counts[0] <= counts[1] && at + bytes <= messages[rank].size(), "table '", path,
             "': a message is short");
      keys.asked_counting[rank] = counts[0];
      keys.asked[rank].resize(counts[1]);
      if (bytes > 0) std::memcpy(keys.asked[rank].data(), messages[rank].data() + at, bytes);
      at += bytes;
    }
    ensure(at == messages[rank].size(), "tables: a message is too long");
  }
}

void Tables::answer(Which which) {
  const auto ranks = static_cast<size_t>(exchange_.ranks());
  RankMessages sent(ranks);
  std::vector<size_t> received(ranks, 0);
  for (auto& [path, entry] : tables_) {
    const StepKeys& keys = entry.*which;
    for (size_t rank = 0; rank < ranks; ++rank) {
      const size_t at = sent[rank].size();
      sent[rank].resize(at + keys.asked[rank].size() * row_bytes(entry));
      entry.table->read(keys.asked[rank], missing_of(path, missing_), sent[rank].data() + at);
      received[rank] += keys.sent[rank].size() * row_bytes(entry);
    }
  }
  const RankMessages rows = exchange_.all_to_all(sent, received);
  std::vector<size_t> at(ranks, 0);
  for (auto& [path, entry] : tables_) {
    StepKeys& keys = entry.*which;
    const size_t bytes = row_bytes(entry);
    keys.rows.resize(keys.index.keys().size() * bytes);
    for (size_t rank = 0; rank < ranks; ++rank)
      for (const int64_t number : keys.sent[rank]) {
        std::memcpy(keys.rows.data() + static_cast<size_t>(number) * bytes,
                    rows[rank].data() + at[rank], bytes);
        at[rank] += bytes;
      }
    keys.fetched = keys.index.keys().size();
  }
}

program::TableRows Tables::rows(size_t use, bool numbered) const {
  const Use& wanted = uses_.at(use);
  const Entry& entry = tables_.at(wanted.table);
  program::TableRows out;
  Dims shape = wanted.numbers.shape;
  shape.push_back(entry.table->spec().width);
  out.rows = Array::empty(entry.table->spec().dtype, shape);
  const size_t bytes = row_bytes(entry);
  auto* const to = static_cast<std::byte*>(out.rows.raw());
  const auto* const numbers = wanted.numbers.data<int64_t>();
  parallel_for(wanted.numbers.size(), kRowsGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (numbers[i] < 0)
        std::memset(to + static_cast<size_t>(i) * bytes, 0, bytes);
      else
        std::memcpy(to + static_cast<size_t>(i) * bytes,
                    entry.now.rows.data() + static_cast<size_t>(numbers[i]) * bytes, bytes);
  });
  if (!numbered) return out;
  out.numbers = Array::empty(DType::kI64, wanted.numbers.shape);
  std::transform(numbers, numbers + wanted.numbers.size(), out.numbers.data<int64_t>(),
                 [](int64_t number) { return std::max<int64_t>(number, 0); });
  return out;
}

program::TableRows Tables::read(const std::string& path, const Array& keys, const Array& mask) {
  TableUse wanted{path, keys};
  wanted.mask = mask;
  if (fields_) add_numbers(wanted, [&](const std::string& field) { return fields_->at(field); });
  const size_t use = add(wanted);
  fetch();
  return rows(use, true);
}

namespace {

template <class T>
void add_rows(const Array& rows, const Array& numbers, Array& sums) {
  const int64_t width = sums.shape[1];
  const T* from = rows.data<T>();
  for (int64_t i = 0; i < numbers.size(); ++i, from += width) {
    const int64_t number = numbers.data<int64_t>()[i];
    if (number < 0) continue;
    T* const to = sums.data<T>() + number * width;
    for (int64_t k = 0; k < width; ++k) to[k] += from[k];
  }
}

}  // namespace

void Tables::add_gradients(size_t use, const Array& gradients) {
  const Use& of = uses_.at(use);
  Entry& entry = tables_.at(of.table);
  const program::TableSpec& spec = entry.table->spec();
  entry.has_gradient = true;
  if (!entry.sums.storage || entry.sums.shape[0] < entry.now.index.size()) {
    // Run call by call, a step finds its keys by and by.
    Array sums = Array::zeros(spec.dtype, {entry.now.index.size(), spec.width});
    if (entry.sums.storage)
      std::memcpy(sums.raw(), entry.sums.raw(),
                  static_cast<size_t>(entry.sums.shape[0]) * row_bytes(entry));
    entry.sums = std::move(sums);
  }
  if (!of.counts) return;
  const Array rows = gradients.on_host().cast(spec.dtype).contiguous();
  ensure(rows.size() == of.numbers.size() * spec.width, "table '", of.table, "': ", rows.size(),
         " gradients");
  if (spec.dtype == DType::kF64)
    add_rows<double>(rows, of.numbers, entry.sums);
  else
    add_rows<float>(rows, of.numbers, entry.sums);
}

void Tables::push() {
  if (pushed_) return;
  pushed_ = true;
  const auto ranks = static_cast<size_t>(exchange_.ranks());
  if (client_) return push_to_servers();
  if (is_local()) {
    for (auto& [path, entry] : tables_) {
      if (!entry.has_gradient) continue;
      const auto keys = entry.now.index.keys();
      const int64_t count = entry.sums.shape[0];
      entry.merged.keys.assign(keys.begin(), keys.begin() + count);
      entry.merged.gradients = std::move(entry.sums);
      if (!observes(entry)) continue;
      entry.merged.uses = entry.now.uses;
      entry.merged.uses.resize(static_cast<size_t>(count));
    }
    return;
  }
  RankMessages sent(ranks), next(ranks);
  std::vector<size_t> received(ranks, 0);
  for (auto& [path, entry] : tables_) {
    if (!entry.has_gradient) continue;
    const size_t bytes = row_bytes(entry);
    const auto* const sums = static_cast<const std::byte*>(entry.sums.raw());
    for (size_t rank = 0; rank < ranks; ++rank) {
      const StepKeys& keys = entry.now;
      for (size_t i = 0; i < keys.sent_counting[rank]; ++i)
        append(sent[rank],
               std::span(sums + static_cast<size_t>(keys.sent[rank][i]) * bytes, bytes));
      received[rank] += keys.asked_counting[rank] * bytes;
      if (!observes(entry)) continue;
      for (size_t i = 0; i < keys.sent_counting[rank]; ++i) {
        const auto number = static_cast<size_t>(keys.sent[rank][i]);
        const tables::KeyUse use = number < keys.uses.size() ? keys.uses[number] : tables::KeyUse{};
        append(sent[rank], std::span<const std::byte>(std::as_bytes(std::span(&use, 1))));
      }
      received[rank] += keys.asked_counting[rank] * sizeof(tables::KeyUse);
    }
  }
  const std::vector<size_t> of_gradients = received;
  if (announced_) {
    next = questions(&Entry::next);
    const std::vector<size_t> sizes = exchange_.sizes(next);
    for (size_t rank = 0; rank < ranks; ++rank) {
      append(sent[rank], std::span<const std::byte>(next[rank]));
      received[rank] += sizes[rank];
    }
  }
  const RankMessages messages = exchange_.all_to_all(sent, received);
  if (announced_) take_questions(&Entry::next, messages, of_gradients);
  std::vector<size_t> at(ranks, 0);
  for (auto& [path, entry] : tables_)
    if (entry.has_gradient) merge(entry, messages, at);
}

void Tables::merge(Entry& entry, const RankMessages& gradients, std::vector<size_t>& at) const {
  std::vector<ps::PushedRows> pushed;
  for (size_t rank = 0; rank < gradients.size(); ++rank) {
    const size_t count = entry.now.asked_counting[rank];
    ps::PushedRows& part = pushed.emplace_back();
    part.keys = std::span(entry.now.asked[rank]).first(count);
    part.rows = gradients[rank].data() + at[rank];
    at[rank] += count * row_bytes(entry);
    if (!observes(entry)) continue;
    part.uses = gradients[rank].data() + at[rank];
    at[rank] += count * sizeof(tables::KeyUse);
  }
  entry.merged = ps::merge(entry.table->spec(), pushed);
}

std::map<std::string, double> Tables::sums_of_squares() {
  push();
  if (client_) return squares_of_servers();
  std::map<std::string, double> out;
  for (auto& [path, entry] : tables_) {
    if (!entry.has_gradient) continue;
    std::vector<double> by_shard(tables::kShards, 0);
    ps::add_squares(entry.table->spec(), entry.merged.keys, entry.merged.gradients, by_shard);
    exchange_.gather_shards(by_shard);
    double& total = out[path] = 0;
    for (const double sum : by_shard) total += sum;
  }
  return out;
}

void Tables::update(const RowUpdate& inputs, const std::map<std::string, double>& scales) {
  trained_ = inputs.step;
  if (is_async()) return update_async(inputs, scales);
  push();
  if (client_) return update_servers(inputs, scales);
  for (auto& [path, entry] : tables_) {
    if (!is_trained(path)) continue;
    if (exchange_.ranks() == 1)
      entry.table->insert(entry.now.index.keys(), entry.now.rows.data());
    else
      for (const std::vector<uint64_t>& keys : entry.now.asked) entry.table->insert(keys);
    if (!entry.has_gradient) continue;
    RowUpdate update = inputs;
    if (const auto scale = scales.find(path); scale != scales.end()) update.scale = scale->second;
    ps::MergedRows& merged = entry.merged;
    if (entry.table->spec().policy.divides_by_show)
      ps::divide_by_shows(merged.uses, merged.gradients);
    entry.table->update(merged.keys, merged.gradients, update);
    if (observes(entry)) entry.table->observe(merged.keys, merged.uses, inputs.step, day_);
    merged = {};
  }
  if (!announced_) return;
  announced_ = false;
  answer(&Entry::next);
  keep_ahead(trained_ + 1, {});
}

}  // namespace paddle::train
