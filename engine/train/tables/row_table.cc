#include "train/tables/row_table.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "autograd/autograd.h"
#include "ops/core/row_sparse.h"
#include "runtime/execute.h"
#include "tensor/random.h"

namespace paddle::train {

LocalTable::LocalTable(program::TableSpec spec, std::shared_ptr<const optim::Optimizer> rule,
                       uint64_t seed)
    : spec_(std::move(spec)), rule_(std::move(rule)), seed_(seed) {
  slots_ = rule_->slots(program::table_weight(spec_.path), {1, spec_.width});
  const bool of_rows = std::all_of(slots_.begin(), slots_.end(), [](const optim::StateSlot& slot) {
    return !slot.shape && !slot.is_copy;
  });
  if (rule_->needs_whole_parameters() || !of_rows)
    fail(ErrorCode::kConfig,
         "sparse_embedding: this optimizer reads the whole table in an update; expected one such "
         "as sgd, momentum, adagrad, adam or adamw");
  states_.resize(slots_.size());
}

size_t LocalTable::row_bytes() const {
  return static_cast<size_t>(storage_bytes(spec_.dtype, spec_.width));
}

void LocalTable::initialize(int64_t key, std::byte* row) const {
  std::vector<double> values(static_cast<size_t>(spec_.width));
  const Random random(seed_, stream_of(program::table_weight(spec_.path)),
                      static_cast<uint64_t>(key));
  lang::fill_row(spec_.init, random, values);
  if (spec_.dtype == DType::kF64)
    std::memcpy(row, values.data(), row_bytes());
  else
    std::copy(values.begin(), values.end(), reinterpret_cast<float*>(row));
}

void LocalTable::insert(int64_t key) {
  index_.add(key);
  rows_.resize(rows_.size() + row_bytes());
  initialize(key, rows_.data() + rows_.size() - row_bytes());
  for (size_t i = 0; i < slots_.size(); ++i) {
    Bytes& state = states_[i];
    state.resize(state.size() + row_bytes());
    std::byte* const row = state.data() + state.size() - row_bytes();
    if (spec_.dtype == DType::kF64)
      std::fill_n(reinterpret_cast<double*>(row), spec_.width, slots_[i].initial);
    else
      std::fill_n(reinterpret_cast<float*>(row), spec_.width,
                  static_cast<float>(slots_[i].initial));
  }
}

Array LocalTable::read(std::span<const int64_t> keys, MissingRow missing) {
  Array out = Array::zeros(spec_.dtype, {static_cast<int64_t>(keys.size()), spec_.width});
  auto* const to = static_cast<std::byte*>(out.raw());
  for (size_t i = 0; i < keys.size(); ++i) {
    int64_t number = index_.find(keys[i]);
    if (number < 0 && missing == MissingRow::kInsert) {
      number = index_.size();
      insert(keys[i]);
    }
    if (number >= 0)
      std::memcpy(to + i * row_bytes(), rows_.data() + static_cast<size_t>(number) * row_bytes(),
                  row_bytes());
    else if (missing == MissingRow::kInitial)
      initialize(keys[i], to + i * row_bytes());
  }
  return out;
}

Array LocalTable::gathered(const Bytes& from, std::span<const int64_t> numbers) const {
  Array out = Array::empty(spec_.dtype, {static_cast<int64_t>(numbers.size()), spec_.width});
  auto* to = static_cast<std::byte*>(out.raw());
  for (const int64_t number : numbers) {
    std::memcpy(to, from.data() + static_cast<size_t>(number) * row_bytes(), row_bytes());
    to += row_bytes();
  }
  return out;
}

void LocalTable::scatter(Bytes& to, std::span<const int64_t> numbers, const Array& rows) const {
  const Array packed = rows.on_host().contiguous();
  const auto* from = static_cast<const std::byte*>(packed.raw());
  for (const int64_t number : numbers) {
    std::memcpy(to.data() + static_cast<size_t>(number) * row_bytes(), from, row_bytes());
    from += row_bytes();
  }
}

void LocalTable::update(std::span<const int64_t> keys, const Array& gradients,
                        const RowUpdate& inputs) {
  if (keys.empty()) return;
  std::vector<int64_t> numbers;
  for (const int64_t key : keys) {
    numbers.push_back(index_.find(key));
    ensure(numbers.back() >= 0, "table '", spec_.path, "': an update of a key without a row");
  }
  runtime::register_backends();
  runtime::EagerExecutor executor;
  const InterpreterScope scope(executor);
  const runtime::SingleRunScope single(true);
  const autograd::NoGradScope no_grad;
  const bool is_f64 = spec_.dtype == DType::kF64;
  optim::UpdateInputs update{.lr = Tensor(is_f64 ? Array::scalar(inputs.rate)
                                                 : Array::scalar(static_cast<float>(inputs.rate))),
                             .step = Tensor(Array::scalar(inputs.step)),
                             .bound = inputs.bound};
  if (inputs.scale) update.scale = Tensor(Array::scalar(*inputs.scale));
  Tensors states;
  for (const Bytes& state : states_) states.emplace_back(gathered(state, numbers));
  // Row-sparse, although it has all rows: the rule is then that of `embedding` with sparse=true,
  // which adds Adam's epsilon elsewhere.
  const auto count = static_cast<int64_t>(numbers.size());
  std::vector<int64_t> all(numbers.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  const Tensor gradient =
      make_row_sparse(Tensor(Array::from<int64_t>(all, {count})), Tensor(gradients), Dim(count));
  const Tensors updated = rule_->update(program::table_weight(spec_.path),
                                        Tensor(gathered(rows_, numbers)), gradient, states, update);
  scatter(rows_, numbers, updated[0].array());
  for (size_t i = 0; i < states_.size(); ++i) scatter(states_[i], numbers, updated[i + 1].array());
}

TableContent LocalTable::content() const {
  const std::span<const int64_t> keys = index_.keys();
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)];
  });
  TableContent out;
  out.keys = Array::empty(DType::kI64, {count()});
  for (size_t i = 0; i < order.size(); ++i)
    out.keys.data<int64_t>()[i] = keys[static_cast<size_t>(order[i])];
  out.weight = gathered(rows_, order);
  for (size_t i = 0; i < slots_.size(); ++i)
    out.states.emplace_back(slots_[i].name, gathered(states_[i], order));
  return out;
}

void LocalTable::restore(const TableContent& content, uint64_t seed) {
  seed_ = seed;
  index_.clear();
  rows_.clear();
  for (Bytes& state : states_) state.clear();
  const Array keys = content.keys.on_host().contiguous();
  for (int64_t i = 0; i < keys.size(); ++i) insert(keys.data<int64_t>()[i]);
  std::vector<int64_t> all(static_cast<size_t>(keys.size()));
  std::iota(all.begin(), all.end(), int64_t{0});
  scatter(rows_, all, content.weight);
  for (size_t i = 0; i < slots_.size(); ++i)
    for (const auto& [name, values] : content.states)
      if (name == slots_[i].name) scatter(states_[i], all, values);
}

void check_content(const program::TableSpec& spec, const TableContent& content,
                   const std::string& place) {
  const std::string keys = program::table_keys(spec.path),
                    weight = program::table_weight(spec.path);
  const auto described = [](const Array& array) { return text(array.dtype) + str(array.shape); };
  if (content.keys.dtype != DType::kI64 || content.keys.shape.size() != 1)
    fail(ErrorCode::kModel, place, ": '", keys, "' is ", described(content.keys),
         ", expected int64 [n]");
  const Dims shape = {content.keys.shape[0], spec.width};
  const auto check = [&](const std::string& name, const Array& rows) {
    if (rows.dtype != spec.dtype || rows.shape != shape)
      fail(ErrorCode::kModel, place, ": '", name, "' is ", described(rows), ", the table needs ",
           text(spec.dtype), str(shape));
  };
  check(weight, content.weight);
  for (const auto& [name, values] : content.states) check(weight + "/" + name, values);
  const Array packed = content.keys.on_host().contiguous();
  for (int64_t i = 1; i < packed.size(); ++i)
    if (packed.data<int64_t>()[i] <= packed.data<int64_t>()[i - 1])
      fail(ErrorCode::kModel, place, ": '", keys, "' has ", packed.data<int64_t>()[i], " after ",
           packed.data<int64_t>()[i - 1], "; expected distinct keys in rising order");
}

}  // namespace paddle::train
