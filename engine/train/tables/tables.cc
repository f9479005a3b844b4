#include "train/tables/tables.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "train/step/step.h"

namespace paddle::train {

using program::table_keys;
using program::table_weight;

void Tables::open(const program::TableSpec& spec) {
  if (!rejection_.empty()) fail(ErrorCode::kConfig, "sparse_embedding: ", rejection_);
  const auto known = tables_.find(spec.path);
  if (known == tables_.end()) {
    tables_[spec.path].table = std::make_unique<LocalTable>(spec, rule_, store_.seed);
    return;
  }
  const program::TableSpec& first = known->second.table->spec();
  if (first.width != spec.width || first.init.text() != spec.init.text())
    fail(ErrorCode::kConfig, "sparse_embedding: the table '", spec.path, "' has rows of ",
         first.width, " that begin as ", first.init.text(), " elsewhere, here of ", spec.width,
         " as ", spec.init.text());
}

bool Tables::is_trained(const std::string& path) const {
  return !rule_->is_frozen(table_weight(path));
}

void Tables::begin_step(MissingRow missing) {
  missing_ = missing;
  for (auto& [path, entry] : tables_) {
    entry.step_keys.clear();
    entry.step_numbers.clear();
  }
}

program::TableRows Tables::read(const std::string& path, const Array& given) {
  Entry& entry = tables_.at(path);
  const Array keys = given.on_host().cast(DType::kI64).contiguous();
  const int64_t count = keys.size(), before = entry.step_keys.size();
  program::TableRows out;
  out.numbers = Array::empty(DType::kI64, keys.shape);
  auto* const numbers = out.numbers.data<int64_t>();
  for (int64_t i = 0; i < count; ++i) numbers[i] = entry.step_keys.add(keys.data<int64_t>()[i]);
  entry.step_numbers.insert(entry.step_numbers.end(), numbers, numbers + count);
  // Earlier reads of this step may have had other keys; their rows are read again only if they are
  // wanted here, too.
  KeyIndex wanted;
  std::vector<int64_t> at(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    at[static_cast<size_t>(i)] = before == 0 ? numbers[i] : wanted.add(keys.data<int64_t>()[i]);
  const Array distinct = entry.table->read(before == 0 ? entry.step_keys.keys() : wanted.keys(),
                                           is_trained(path) ? missing_ : MissingRow::kZero);
  Dims shape = keys.shape;
  shape.push_back(entry.table->spec().width);
  out.rows = Array::empty(distinct.dtype, shape);
  const auto bytes = static_cast<size_t>(storage_bytes(distinct.dtype, shape.back()));
  auto* to = static_cast<std::byte*>(out.rows.raw());
  for (const int64_t number : at) {
    std::memcpy(to,
                static_cast<const std::byte*>(distinct.raw()) + static_cast<size_t>(number) * bytes,
                bytes);
    to += bytes;
  }
  return out;
}

namespace {

/// Rows summed by number, in their order.
template <class T>
void sum_rows(const Array& rows, std::span<const int64_t> numbers, Array& sums) {
  const int64_t width = sums.shape[1];
  const T* from = rows.data<T>();
  for (const int64_t number : numbers) {
    T* const to = sums.data<T>() + number * width;
    for (int64_t i = 0; i < width; ++i) to[i] += from[i];
    from += width;
  }
}

}  // namespace

void Tables::update(const std::string& path, const Array& gradients, const RowUpdate& inputs) {
  Entry& entry = tables_.at(path);
  const program::TableSpec& spec = entry.table->spec();
  const Array rows = gradients.on_host().cast(spec.dtype).contiguous();
  ensure(rows.size() == static_cast<int64_t>(entry.step_numbers.size()) * spec.width, "table '",
         path, "': ", rows.size(), " gradients");
  Array sums = Array::zeros(spec.dtype, {entry.step_keys.size(), spec.width});
  if (spec.dtype == DType::kF64)
    sum_rows<double>(rows, entry.step_numbers, sums);
  else
    sum_rows<float>(rows, entry.step_numbers, sums);
  entry.table->update(entry.step_keys.keys(), sums, inputs);
}

program::ParameterStore Tables::with_tables(const program::ParameterStore& store) const {
  program::ParameterStore out = store;
  for (const auto& [path, entry] : tables_) {
    TableContent content = entry.table->content();
    const std::string weight = table_weight(path);
    out.parameters[table_keys(path)] = {std::move(content.keys), ""};
    out.parameters[weight] = {std::move(content.weight), entry.table->spec().init.text()};
    for (auto& [slot, values] : content.states)
      out.states[Step::optimizer_state(weight, slot)] = std::move(values);
  }
  return out;
}

bool Tables::has_name(const std::string& name) const {
  return std::any_of(tables_.begin(), tables_.end(), [&](const auto& each) {
    const std::string weight = table_weight(each.first);
    return name == table_keys(each.first) || name == weight ||
           name.starts_with(Step::optimizer_state(weight, ""));
  });
}

void Tables::remove_names(std::vector<std::string>& names) const {
  std::erase_if(names, [&](const std::string& name) { return has_name(name); });
}

std::vector<std::string> Tables::names() const {
  std::vector<std::string> out;
  for (const auto& [path, entry] : tables_) {
    out.push_back(table_keys(path));
    out.push_back(table_weight(path));
  }
  return out;
}

std::vector<std::string> Tables::weights() const {
  std::vector<std::string> out;
  for (const auto& [path, entry] : tables_) out.push_back(table_weight(path));
  return out;
}

Tables::Contents Tables::contents_of(const formats::SafetensorsReader& weights,
                                     const formats::SafetensorsReader* states) const {
  Contents out;
  for (const auto& [path, entry] : tables_) {
    const program::TableSpec& spec = entry.table->spec();
    TableContent& content = out[path];
    for (const std::string& name : {table_keys(path), table_weight(path)})
      if (!weights.find(name))
        fail(ErrorCode::kModel, weights.path(), ": lacks '", name, "' of a sparse_embedding");
    content.keys = weights.read(table_keys(path));
    content.weight = weights.read(table_weight(path));
    check_content(spec, content, weights.path());
    if (!states) continue;
    for (const optim::StateSlot& slot : rule_->slots(table_weight(path), {1, spec.width})) {
      const std::string name = Step::optimizer_state(table_weight(path), slot.name);
      if (!states->find(name)) fail(ErrorCode::kModel, states->path(), ": lacks '", name, "'");
      content.states.emplace_back(slot.name, states->read(name));
    }
    check_content(spec, content, states->path());
  }
  return out;
}

void Tables::restore(const Contents& contents) {
  for (const auto& [path, content] : contents)
    tables_.at(path).table->restore(content, store_.seed);
}

program::FurtherTensors Tables::of_checkpoint(Contents& contents) const {
  return {[this](const std::string& name) { return has_name(name); },
          [this, &contents](const formats::SafetensorsReader& weights,
                            const formats::SafetensorsReader& optimizer) {
            contents = contents_of(weights, &optimizer);
          }};
}

std::vector<std::string> Tables::summary() const {
  std::vector<std::string> out;
  for (const auto& [path, entry] : tables_) {
    const program::TableSpec& spec = entry.table->spec();
    const auto states = rule_->slots(table_weight(path), {1, spec.width}).size();
    const auto row = static_cast<uint64_t>(storage_bytes(spec.dtype, spec.width));
    out.push_back(str("table ", path, ": ", entry.table->count(), " rows of ", text(spec.dtype),
                      "[", spec.width, "], ", human_bytes((1 + states) * row + 3 * sizeof(int64_t)),
                      " a key with its optimizer states", is_trained(path) ? "" : "; frozen"));
  }
  return out;
}

}  // namespace paddle::train
