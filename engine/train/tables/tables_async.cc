// Tables on servers that take the gradients of each worker by themselves. Rows of a step are asked
// for before the gradients of the step before it are sent, and those of several steps may be sent
// together. All of it counts the worker's own steps, so that a replay does the same.

#include <algorithm>
#include <cstring>

#include "train/tables/tables.h"

namespace paddle::train {

void Tables::wait_for_all() {
  ps::BodyWriter body;
  body.add(trained_);
  client_->happen(ps::Kind::kFence, body.take());
  fences_.erase(trained_);
}

void Tables::start_training() {
  if (fences_.contains(trained_)) stop_training();  // as the run that is repeated
  if (is_training_) return;
  is_training_ = true;
  connect();
  wait_for_all();
}

void Tables::stop_training() {
  if (!is_training_) return;
  is_training_ = false;
  drop_answers();
  if (merged_ > 0) is_geo() ? exchange() : send_merged(merged_inputs_, {});
  for (auto& [path, entry] : tables_)
    if (entry.cache) entry.cache->clear();
  finish_event();
  wait_for_all();
}

void Tables::update_async(const RowUpdate& inputs, const std::map<std::string, double>& scales) {
  if (skipped_.contains(inputs.step))
    for (auto& [path, entry] : tables_) {
      entry.now = {};
      entry.sums = {};
      entry.has_gradient = false;
    }
  if (is_geo()) {
    update_own(inputs, scales);
  } else if (opening_.updates.merge > 1) {
    for (auto& [path, entry] : tables_)
      if (is_trained(path)) merge_step(entry);
    merged_inputs_ = inputs;
    if (++merged_ == opening_.updates.merge) send_merged(inputs, scales);
  } else {
    push_to_servers();
    update_servers(inputs, scales);
  }
}

void Tables::merge_step(Entry& entry) const {
  const auto keys = entry.now.index.keys();
  StepKeys& to = entry.merging;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < keys.size(); ++i) {
    numbers.push_back(static_cast<size_t>(to.index.add(keys[i])));
    if (numbers[i] == to.counts.size()) to.counts.push_back(0);
    if (entry.now.counts[i]) to.counts[numbers[i]] = 1;
  }
  if (!entry.now.uses.empty()) {
    to.uses.resize(to.counts.size());
    for (size_t i = 0; i < entry.now.uses.size(); ++i) to.uses[numbers[i]] += entry.now.uses[i];
  }
  if (!entry.has_gradient) return;
  const program::TableSpec& spec = entry.table->spec();
  Array sums = Array::zeros(spec.dtype, {to.index.size(), spec.width});
  if (entry.merging_sums.storage)
    std::memcpy(sums.raw(), entry.merging_sums.raw(),
                static_cast<size_t>(entry.merging_sums.shape[0]) * row_bytes(entry));
  const auto add = [&](auto* sum, const auto* row) {
    for (int64_t i = 0; i < entry.sums.shape[0]; ++i, row += spec.width)
      for (int64_t k = 0; k < spec.width; ++k)
        sum[static_cast<int64_t>(numbers[static_cast<size_t>(i)]) * spec.width + k] += row[k];
  };
  if (spec.dtype == DType::kF64)
    add(sums.data<double>(), entry.sums.data<double>());
  else
    add(sums.data<float>(), entry.sums.data<float>());
  entry.merging_sums = std::move(sums);
  entry.merges_gradient = true;
}

void Tables::send_merged(const RowUpdate& inputs, const std::map<std::string, double>& scales) {
  merged_ = 0;
  for (auto& [path, entry] : tables_) {
    entry.now = std::exchange(entry.merging, {});
    entry.sums = std::exchange(entry.merging_sums, {});
    entry.has_gradient = std::exchange(entry.merges_gradient, false);
    // Keys without a gradient so far have none in the sums either.
    if (entry.has_gradient && entry.sums.shape[0] < entry.now.index.size()) {
      Array sums = Array::zeros(entry.sums.dtype, {entry.now.index.size(), entry.sums.shape[1]});
      std::memcpy(sums.raw(), entry.sums.raw(),
                  static_cast<size_t>(entry.sums.shape[0]) * row_bytes(entry));
      entry.sums = std::move(sums);
    }
  }
  divide_keys(&Entry::now);
  push_to_servers();
  update_servers(inputs, scales);
}

}  // namespace paddle::train
