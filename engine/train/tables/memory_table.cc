#include "train/tables/memory_table.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "autograd/autograd.h"
#include "base/parallel.h"
#include "ops/core/row_sparse.h"
#include "runtime/execute.h"
#include "tables/row_update.h"
#include "tensor/random.h"

namespace paddle::train {
namespace {

using Slots = std::vector<optim::StateSlot>;

constexpr int64_t kReadGrain = 1024;

/// The states of a row.
Slots checked_slots(const program::TableSpec& spec, const optim::Optimizer& rule) {
  Slots slots = rule.slots(program::table_weight(spec.path), {1, spec.width});
  const bool of_rows = std::all_of(slots.begin(), slots.end(), [](const optim::StateSlot& slot) {
    return !slot.shape && !slot.is_copy;
  });
  if (rule.needs_whole_parameters() || !of_rows)
    fail(ErrorCode::kConfig,
         "sparse_embedding: this optimizer reads the whole table in an update; expected one such "
         "as sgd, momentum, adagrad, adam or adamw");
  return slots;
}

tables::TableFormat format_of(const program::TableSpec& spec, const Slots& slots) {
  tables::TableFormat out{
      .name = spec.path, .key = spec.key, .dtype = spec.dtype, .width = spec.width, .states = {}};
  for (const optim::StateSlot& slot : slots) out.states.push_back(slot.name);
  return out;
}

/// Numbers as elements of a row.
void put(DType dtype, std::span<const double> values, std::byte* row) {
  if (dtype == DType::kF64)
    std::copy(values.begin(), values.end(), reinterpret_cast<double*>(row));
  else
    std::copy(values.begin(), values.end(), reinterpret_cast<float*>(row));
}

}  // namespace

MemoryTable::MemoryTable(program::TableSpec spec, std::shared_ptr<const optim::Optimizer> rule,
                         uint64_t seed)
    : spec_(std::move(spec)),
      rule_(std::move(rule)),
      seed_(seed),
      stream_(stream_of(program::table_weight(spec_.path))),
      slots_(checked_slots(spec_, *rule_)),
      row_rule_(rule_->options().rule.rule->row_rule()),
      format_(format_of(spec_, slots_)),
      records_(spec_.dtype, spec_.width, static_cast<int64_t>(slots_.size())) {}

uint64_t MemoryTable::payload_bytes() const {
  return sizeof(uint64_t) + records_.row_bytes() * (1 + slots_.size());
}

void MemoryTable::initialize(uint64_t key, std::byte* row, std::vector<double>& values) const {
  values.resize(static_cast<size_t>(spec_.width));
  const Random random(seed_, stream_, key);
  lang::fill_row(spec_.init, random, values);
  put(spec_.dtype, values, row);
}

void MemoryTable::initialize_states(std::byte* row) const {
  for (const optim::StateSlot& slot : slots_) {
    row += records_.row_bytes();
    if (spec_.dtype == DType::kF64)
      std::fill_n(reinterpret_cast<double*>(row), spec_.width, slot.initial);
    else
      std::fill_n(reinterpret_cast<float*>(row), spec_.width, static_cast<float>(slot.initial));
  }
}

void MemoryTable::read(std::span<const uint64_t> keys, MissingRow missing, std::byte* rows) const {
  std::vector<std::byte*> found(keys.size());
  records_.find(keys, found);
  const size_t bytes = records_.row_bytes();
  parallel_for(static_cast<int64_t>(keys.size()), kReadGrain, [&](int64_t begin, int64_t end) {
    std::vector<double> values;
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      std::byte* const to = rows + i * bytes;
      if (found[i])
        std::memcpy(to, found[i], bytes);
      else if (missing == MissingRow::kInitial)
        initialize(keys[i], to, values);
      else
        std::memset(to, 0, bytes);
    }
  });
}

void MemoryTable::insert(std::span<const uint64_t> keys, const std::byte* rows) {
  std::vector<std::byte*> found(keys.size());
  records_.find(keys, found);
  std::vector<double> values;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (found[i] || records_.find(keys[i])) continue;  // a key may come twice
    std::byte* const row = records_.insert(keys[i]);
    if (rows)
      std::memcpy(row, rows + i * records_.row_bytes(), records_.row_bytes());
    else
      initialize(keys[i], row, values);
    initialize_states(row);
  }
}

void MemoryTable::update(std::span<const uint64_t> keys, const Array& gradients,
                         const RowUpdate& inputs) {
  if (keys.empty()) return;
  std::vector<std::byte*> rows(keys.size());
  records_.find(keys, rows);
  for (const std::byte* row : rows)
    ensure(row != nullptr, "table '", spec_.path, "': an update of a key without a row");
  if (!row_rule_) return update_by_operations(rows, gradients, inputs);
  const std::string name = program::table_weight(spec_.path);
  tables::RowScalars scalars;
  // Rates are numbers of the type of the rows.
  const double factor = rule_->rate_factor(name);
  scalars.rate = spec_.dtype == DType::kF64
                     ? inputs.rate * factor
                     : static_cast<float>(inputs.rate) * static_cast<float>(factor);
  scalars.weight_decay = rule_->weight_decay(name, 2);
  scalars.step = static_cast<double>(inputs.step);
  if (inputs.scale) scalars.scale = *inputs.scale;
  if (inputs.bound) scalars.bound = *inputs.bound;
  tables::update_rows(*row_rule_, scalars, spec_.dtype, spec_.width, rows, gradients.raw());
}

void MemoryTable::update_by_operations(std::span<std::byte* const> rows, const Array& gradients,
                                       const RowUpdate& inputs) {
  runtime::register_backends();
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  const runtime::SingleRunScope single(true);
  const autograd::NoGradScope no_grad;
  const auto count = static_cast<int64_t>(rows.size());
  const size_t bytes = records_.row_bytes();
  const auto gathered = [&](size_t column) {
    Array out = Array::empty(spec_.dtype, {count, spec_.width});
    for (size_t i = 0; i < rows.size(); ++i)
      std::memcpy(static_cast<std::byte*>(out.raw()) + i * bytes, rows[i] + column * bytes, bytes);
    return Tensor(std::move(out));
  };
  const bool is_f64 = spec_.dtype == DType::kF64;
  optim::UpdateInputs update{.lr = Tensor(is_f64 ? Array::scalar(inputs.rate)
                                                 : Array::scalar(static_cast<float>(inputs.rate))),
                             .step = Tensor(Array::scalar(inputs.step)),
                             .bound = inputs.bound};
  if (inputs.scale) update.scale = Tensor(Array::scalar(*inputs.scale));
  Tensors states;
  for (size_t i = 0; i < slots_.size(); ++i) states.push_back(gathered(1 + i));
  // Row-sparse, although it has all rows: the rule is then that of `embedding` with sparse=true.
  std::vector<int64_t> all(rows.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  const Tensor gradient =
      make_row_sparse(Tensor(Array::from<int64_t>(all, {count})), Tensor(gradients), Dim(count));
  const Tensors updated =
      rule_->update(program::table_weight(spec_.path), gathered(0), gradient, states, update);
  for (size_t column = 0; column <= slots_.size(); ++column) {
    const Array packed = updated[column].array().on_host().contiguous();
    for (size_t i = 0; i < rows.size(); ++i)
      std::memcpy(rows[i] + column * bytes, static_cast<const std::byte*>(packed.raw()) + i * bytes,
                  bytes);
  }
}

TableContent MemoryTable::content(bool states) const {
  struct Found {
    uint64_t order;
    uint64_t key;
    const std::byte* row;
  };
  std::vector<Found> all;
  all.reserve(static_cast<size_t>(count()));
  const bool is_signed = spec_.key == DType::kI64;
  for (int shard = 0; shard < tables::kShards; ++shard)
    records_.for_each_sorted(shard, is_signed, [&](uint64_t key, const std::byte* row) {
      all.push_back({tables::ordered(key, is_signed), key, row});
    });
  std::sort(all.begin(), all.end(),
            [](const Found& a, const Found& b) { return a.order < b.order; });
  TableContent out;
  out.keys = Array::empty(spec_.key, {count()});
  for (size_t i = 0; i < all.size(); ++i) static_cast<uint64_t*>(out.keys.raw())[i] = all[i].key;
  const size_t bytes = records_.row_bytes();
  const auto column_of = [&](size_t column) {
    Array values = Array::empty(spec_.dtype, {count(), spec_.width});
    for (size_t i = 0; i < all.size(); ++i)
      std::memcpy(static_cast<std::byte*>(values.raw()) + i * bytes, all[i].row + column * bytes,
                  bytes);
    return values;
  };
  out.weight = column_of(0);
  for (size_t i = 0; states && i < slots_.size(); ++i)
    out.states.emplace_back(slots_[i].name, column_of(1 + i));
  return out;
}

std::string MemoryTable::write(const std::string& folder, std::pair<int, int> shards,
                               int64_t step) const {
  return tables::write_segments(folder, format_, records_, shards, step);
}

void MemoryTable::clear(uint64_t seed) {
  seed_ = seed;
  records_.clear();
}

void MemoryTable::add(const TableContent& content, std::pair<int, int> shards) {
  const auto packed = [](const Array& array) { return array.on_host().contiguous(); };
  const Array keys = packed(content.keys), weight = packed(content.weight);
  std::vector<Array> states(slots_.size());
  for (size_t i = 0; i < slots_.size(); ++i)
    for (const auto& [name, values] : content.states)
      if (name == slots_[i].name) states[i] = packed(values);
  const bool has_all = std::all_of(states.begin(), states.end(),
                                   [](const Array& values) { return values.storage != nullptr; });
  const size_t bytes = records_.row_bytes();
  for (int64_t i = 0; i < keys.size(); ++i) {
    const uint64_t key = static_cast<const uint64_t*>(keys.raw())[i];
    const int shard = tables::shard_of(key);
    if (shard < shards.first || shard >= shards.second) continue;
    std::byte* const row = records_.insert(key);
    const auto from = [&](const Array& values) {
      return static_cast<const std::byte*>(values.raw()) + static_cast<size_t>(i) * bytes;
    };
    std::memcpy(row, from(weight), bytes);
    if (!has_all) initialize_states(row);
    for (size_t s = 0; s < states.size(); ++s)
      if (states[s].storage) std::memcpy(row + (1 + s) * bytes, from(states[s]), bytes);
  }
}

Registry<TableKind>& table_kinds() {
  static Registry<TableKind> kinds(
      "kind of table",
      {{"memory", "in the memory of the ranks",
        [](program::TableSpec spec, std::shared_ptr<const optim::Optimizer> rule, uint64_t seed) {
          return std::make_unique<MemoryTable>(std::move(spec), std::move(rule), seed);
        }}});
  return kinds;
}

void check_content(const program::TableSpec& spec, const TableContent& content,
                   const std::string& place) {
  const std::string keys = program::table_keys(spec.path),
                    weight = program::table_weight(spec.path);
  const auto described = [](const Array& array) { return text(array.dtype) + str(array.shape); };
  if (content.keys.dtype != spec.key || content.keys.shape.size() != 1)
    fail(ErrorCode::kModel, place, ": '", keys, "' is ", described(content.keys), ", expected ",
         text(spec.key), " [n]");
  const Dims shape = {content.keys.shape[0], spec.width};
  const auto check = [&](const std::string& name, const Array& rows) {
    if (rows.dtype != spec.dtype || rows.shape != shape)
      fail(ErrorCode::kModel, place, ": '", name, "' is ", described(rows), ", the table needs ",
           text(spec.dtype), str(shape));
  };
  check(weight, content.weight);
  for (const auto& [name, values] : content.states) check(weight + "/" + name, values);
  const Array packed = content.keys.on_host().contiguous();
  const auto* const key = static_cast<const uint64_t*>(packed.raw());
  const bool is_signed = spec.key == DType::kI64;
  const auto shown = [&](uint64_t bits) {
    return is_signed ? std::to_string(static_cast<int64_t>(bits)) : std::to_string(bits);
  };
  for (int64_t i = 1; i < packed.size(); ++i)
    if (tables::ordered(key[i], is_signed) <= tables::ordered(key[i - 1], is_signed))
      fail(ErrorCode::kModel, place, ": '", keys, "' has ", shown(key[i]), " after ",
           shown(key[i - 1]), "; expected distinct keys in rising order");
}

}  // namespace paddle::train
