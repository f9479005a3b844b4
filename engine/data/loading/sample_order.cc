#include "data/loading/sample_order.h"

#include <algorithm>

namespace paddle::data {
namespace {

/// Orders the places [begin, end) of an epoch so that each run of `batch` places holds samples of
/// similar lengths; the runs themselves come in a random order, and what fills no batch is last.
std::vector<int64_t> order_by_length(std::vector<std::pair<int64_t, int64_t>> lengths,
                                     int64_t batch, uint64_t seed, uint64_t counter) {
  const auto full = static_cast<int64_t>(lengths.size()) / batch;
  const auto sorted_end = lengths.begin() + full * batch;
  // The stable order keeps samples of one length as random as they came.
  std::stable_sort(lengths.begin(), sorted_end,
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<int64_t> out;
  out.reserve(lengths.size());
  if (full > 0) {
    const Permutation runs(static_cast<uint64_t>(full), seed, stream_of("length"), counter);
    for (int64_t i = 0; i < full; ++i) {
      const auto run = static_cast<int64_t>(runs(static_cast<uint64_t>(i)));
      for (int64_t k = 0; k < batch; ++k)
        out.push_back(lengths[static_cast<size_t>(run * batch + k)].second);
    }
  }
  for (auto it = sorted_end; it != lengths.end(); ++it) out.push_back(it->second);
  return out;
}

}  // namespace

int64_t epoch_size(const Dataset& dataset, const LoaderOptions& options) {
  return options.epoch_samples > 0 ? options.epoch_samples : dataset.size();
}

SampleOrder::SampleOrder(DatasetPtr dataset, const LoaderOptions& options, bool is_padded)
    : dataset_(std::move(dataset)),
      shuffle_(options.shuffle),
      seed_(options.seed),
      batch_size_(options.batch_size),
      epoch_size_(data::epoch_size(*dataset_, options)),
      length_window_(is_padded ? options.length_window : 0) {
  if (!options.weights.empty()) draw_.emplace(options.weights);
}

SampleOrder::EpochOrder SampleOrder::order_of(int64_t epoch) const {
  const auto counter = static_cast<uint64_t>(epoch);
  if (draw_) {
    const Random random(seed_, stream_of("draw"), counter);
    return [this, random](int64_t place) {
      return (*draw_)(random.uniform(static_cast<uint64_t>(place)));
    };
  }
  const auto order = std::make_shared<Permutation>(static_cast<uint64_t>(dataset_->size()), seed_,
                                                   stream_of("shuffle"), counter);
  return [order](int64_t place) {
    return static_cast<int64_t>((*order)(static_cast<uint64_t>(place)));
  };
}

std::vector<int64_t> SampleOrder::indices(int64_t epoch, int64_t begin, int64_t end) {
  std::vector<int64_t> out;
  if (!shuffle_) {
    for (int64_t at = begin; at < end; ++at) out.push_back(at);
    return out;
  }
  const EpochOrder order = order_of(epoch);
  if (length_window_ == 0) {
    for (int64_t at = begin; at < end; ++at) out.push_back(order(at));
    return out;
  }
  const int64_t places = checked_multiply(length_window_, batch_size_);
  for (int64_t at = begin; at < end;) {
    const int64_t window = at / places;
    const auto sorted = sorted_window(epoch, window, places, order);
    for (; at < end && at / places == window; ++at)
      out.push_back((*sorted)[static_cast<size_t>(at - window * places)]);
  }
  return out;
}

SampleOrder::Window SampleOrder::sorted_window(int64_t epoch, int64_t window, int64_t places,
                                               const EpochOrder& order) {
  const std::lock_guard lock(window_mutex_);
  for (const auto& [key, known] : windows_)
    if (key == std::pair(epoch, window)) return known;
  std::vector<std::pair<int64_t, int64_t>> lengths;
  const int64_t end = std::min((window + 1) * places, epoch_size_);
  for (int64_t at = window * places; at < end; ++at) {
    const int64_t index = order(at);
    lengths.emplace_back(dataset_->length_of(index), index);
  }
  const uint64_t counter =
      mix64(static_cast<uint64_t>(epoch) << 32 ^ static_cast<uint64_t>(window));
  auto sorted = std::make_shared<const std::vector<int64_t>>(
      order_by_length(std::move(lengths), batch_size_, seed_, counter));
  windows_.emplace_back(std::pair(epoch, window), sorted);
  if (windows_.size() > 4) windows_.pop_front();
  return sorted;
}

}  // namespace paddle::data
