#include "program/row_records.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "autograd/autograd.h"
#include "ops/core/row_sparse.h"
#include "runtime/execute.h"
#include "tensor/random.h"

namespace paddle::program {
namespace {

using Slots = std::vector<optim::StateSlot>;

/// The states of a row.
Slots checked_slots(const TableSpec& spec, const optim::Optimizer& rule) {
  const std::optional<optim::RowRule> of_rows_only = rule.options().rule.rule->row_rule();
  if (spec.policy.row_moment) {
    if (!of_rows_only || of_rows_only->kind != optim::RowRule::Kind::kAdagrad)
      fail(ErrorCode::kConfig, "tables: the table '", spec.path,
           "' has optimizer.per: row, which the optimizer ", rule.name(),
           " does not have; expected adagrad");
    return {};
  }
  if ((spec.policy.wide_columns > 0 || spec.policy.bounds) && !of_rows_only)
    fail(ErrorCode::kConfig, "tables: the table '", spec.path, "' has ",
         spec.policy.bounds ? "optimizer.bounds" : "a wide part", ", which the optimizer ",
         rule.name(), " does not support; expected sgd, momentum, adagrad, adam or adamw");
  Slots slots = rule.slots(table_weight(spec.path), {1, spec.width});
  const bool of_rows = std::all_of(slots.begin(), slots.end(), [](const optim::StateSlot& slot) {
    return !slot.shape && !slot.is_copy;
  });
  if (rule.needs_whole_parameters() || !of_rows)
    fail(ErrorCode::kConfig,
         "sparse_embedding: this optimizer reads the whole table in an update; expected one such "
         "as sgd, momentum, adagrad, adam or adamw");
  return slots;
}

tables::TableFormat format_of(const TableSpec& spec, const Slots& slots) {
  tables::TableFormat out{
      .name = spec.path, .key = spec.key, .dtype = spec.dtype, .width = spec.width, .states = {}};
  for (const optim::StateSlot& slot : slots) out.states.push_back(slot.name);
  out.statistics = spec.policy.columns();
  return out;
}

tables::RowExtras extras_of(const TableSpec& spec, const tables::TableFormat& format,
                            size_t record_bytes) {
  tables::RowExtras out{.bounds = spec.policy.bounds};
  for (size_t i = 0; i < format.statistics.size(); ++i) {
    const size_t at = record_bytes + i * sizeof(float);
    if (format.statistics[i] == tables::kWide) out.wide_at = at;
    if (format.statistics[i] == tables::kRowMoment) out.moment_at = at;
  }
  out.narrow = spec.width - spec.policy.wide_columns;
  out.moment_initial = spec.policy.row_moment.value_or(0);
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

RowRecords::RowRecords(TableSpec spec, std::shared_ptr<const optim::Optimizer> rule, uint64_t seed)
    : spec_(std::move(spec)),
      rule_(std::move(rule)),
      seed_(seed),
      stream_(stream_of(table_weight(spec_.path))),
      slots_(checked_slots(spec_, *rule_)),
      row_rule_(rule_->options().rule.rule->row_rule()),
      format_(format_of(spec_, slots_)),
      row_bytes_(static_cast<size_t>(spec_.width * item_size(spec_.dtype))),
      extras_(extras_of(spec_, format_, record_bytes())) {}

void RowRecords::begin_row(uint64_t key, std::byte* row, std::vector<double>& scratch) const {
  scratch.resize(static_cast<size_t>(spec_.width));
  const Random random(seed_, stream_, key);
  lang::fill_row(spec_.init, random, scratch);
  if (extras_.wide_at) std::fill(scratch.begin() + extras_.narrow, scratch.end(), 0.0);
  put(spec_.dtype, scratch, row);
}

void RowRecords::widen(uint64_t key, std::byte* record, std::vector<double>& scratch) const {
  float is_wide = 0;
  if (!extras_.wide_at) return;
  std::memcpy(&is_wide, record + *extras_.wide_at, sizeof is_wide);
  if (is_wide != 0) return;
  is_wide = 1;
  std::memcpy(record + *extras_.wide_at, &is_wide, sizeof is_wide);
  scratch.resize(static_cast<size_t>(spec_.width));
  const Random random(seed_, stream_, key);
  lang::fill_row(spec_.init, random, scratch);
  put(spec_.dtype, std::span(scratch).subspan(static_cast<size_t>(extras_.narrow)),
      record + static_cast<size_t>(extras_.narrow * item_size(spec_.dtype)));
}

void RowRecords::begin_further(std::byte* record) const {
  begin_states(record);
  std::memset(record + record_bytes(), 0, column_bytes());
}

double RowRecords::chance(uint64_t key, int64_t step) const {
  const Random random(seed_, stream_of(spec_.path + ".entry"), key);
  return random.uniform(static_cast<uint64_t>(step));
}

void RowRecords::begin_states(std::byte* record) const {
  for (const optim::StateSlot& slot : slots_) {
    record += row_bytes_;
    if (spec_.dtype == DType::kF64)
      std::fill_n(reinterpret_cast<double*>(record), spec_.width, slot.initial);
    else
      std::fill_n(reinterpret_cast<float*>(record), spec_.width, static_cast<float>(slot.initial));
  }
}

void RowRecords::update(std::span<std::byte* const> records, const void* gradients,
                        const RowUpdate& inputs) const {
  if (!row_rule_) return update_by_operations(records, gradients, inputs);
  const std::string name = table_weight(spec_.path);
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
  tables::update_rows(*row_rule_, scalars, spec_.dtype, spec_.width, records, gradients, extras_);
}

void RowRecords::update_by_operations(std::span<std::byte* const> records, const void* gradients,
                                      const RowUpdate& inputs) const {
  runtime::register_backends();
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  const runtime::SingleRunScope single(true);
  const autograd::NoGradScope no_grad;
  const auto count = static_cast<int64_t>(records.size());
  const auto gathered = [&](size_t column) {
    Array out = Array::empty(spec_.dtype, {count, spec_.width});
    for (size_t i = 0; i < records.size(); ++i)
      std::memcpy(static_cast<std::byte*>(out.raw()) + i * row_bytes_,
                  records[i] + column * row_bytes_, row_bytes_);
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
  Array given = Array::empty(spec_.dtype, {count, spec_.width});
  std::memcpy(given.raw(), gradients, records.size() * row_bytes_);
  // Row-sparse, although it has all rows: the rule is then that of `embedding` with sparse=true.
  std::vector<int64_t> all(records.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  const Tensor gradient = make_row_sparse(Tensor(Array::from<int64_t>(all, {count})),
                                          Tensor(std::move(given)), Dim(count));
  const Tensors updated =
      rule_->update(table_weight(spec_.path), gathered(0), gradient, states, update);
  for (size_t column = 0; column <= slots_.size(); ++column) {
    const Array packed = updated[column].array().on_host().contiguous();
    for (size_t i = 0; i < records.size(); ++i)
      std::memcpy(records[i] + column * row_bytes_,
                  static_cast<const std::byte*>(packed.raw()) + i * row_bytes_, row_bytes_);
  }
}

TableContent RowRecords::content(std::vector<Found> records, bool states) const {
  const bool is_signed = spec_.key == DType::kI64;
  std::sort(records.begin(), records.end(), [is_signed](const Found& a, const Found& b) {
    return tables::ordered(a.key, is_signed) < tables::ordered(b.key, is_signed);
  });
  const auto count = static_cast<int64_t>(records.size());
  TableContent out;
  out.keys = Array::empty(spec_.key, {count});
  for (size_t i = 0; i < records.size(); ++i)
    static_cast<uint64_t*>(out.keys.raw())[i] = records[i].key;
  const auto column_of = [&](size_t column) {
    Array values = Array::empty(spec_.dtype, {count, spec_.width});
    for (size_t i = 0; i < records.size(); ++i)
      std::memcpy(static_cast<std::byte*>(values.raw()) + i * row_bytes_,
                  records[i].record + column * row_bytes_, row_bytes_);
    return values;
  };
  out.weight = column_of(0);
  for (size_t i = 0; states && i < slots_.size(); ++i)
    out.states.emplace_back(slots_[i].name, column_of(1 + i));
  for (size_t s = 0; states && s < format_.statistics.size(); ++s) {
    Array values = Array::empty(DType::kF32, {count});
    for (size_t i = 0; i < records.size(); ++i)
      std::memcpy(values.data<float>() + i, records[i].record + record_bytes() + s * sizeof(float),
                  sizeof(float));
    out.statistics.emplace_back(format_.statistics[s], std::move(values));
  }
  return out;
}

void RowRecords::for_each(
    const TableContent& content, std::pair<int, int> shards,
    const std::function<void(uint64_t, const std::function<void(std::byte*)>&)>& use) const {
  const auto packed = [](const Array& array) { return array.on_host().contiguous(); };
  const Array keys = packed(content.keys), weight = packed(content.weight);
  std::vector<Array> states(slots_.size());
  for (size_t i = 0; i < slots_.size(); ++i)
    for (const auto& [name, values] : content.states)
      if (name == slots_[i].name) states[i] = packed(values);
  const bool has_all = std::all_of(states.begin(), states.end(),
                                   [](const Array& values) { return values.storage != nullptr; });
  std::vector<Array> statistics(format_.statistics.size());
  for (size_t i = 0; i < statistics.size(); ++i)
    for (const auto& [name, values] : content.statistics)
      if (name == format_.statistics[i]) statistics[i] = packed(values);
  int64_t i = 0;
  const std::function<void(std::byte*)> fill = [&](std::byte* record) {
    const auto from = [&](const Array& values) {
      return static_cast<const std::byte*>(values.raw()) + static_cast<size_t>(i) * row_bytes_;
    };
    std::memcpy(record, from(weight), row_bytes_);
    if (!has_all) begin_states(record);
    for (size_t s = 0; s < states.size(); ++s)
      if (states[s].storage)
        std::memcpy(record + (1 + s) * row_bytes_, from(states[s]), row_bytes_);
    for (size_t s = 0; s < statistics.size(); ++s) {
      const float missing = format_.statistics[s] == tables::kWide ? 1 : 0;
      const float value = statistics[s].storage ? statistics[s].data<float>()[i] : missing;
      std::memcpy(record + record_bytes() + s * sizeof(float), &value, sizeof value);
    }
  };
  for (; i < keys.size(); ++i) {
    const uint64_t key = static_cast<const uint64_t*>(keys.raw())[i];
    const int shard = tables::shard_of(key);
    if (shard >= shards.first && shard < shards.second) use(key, fill);
  }
}

}  // namespace paddle::program
