#pragma once
// The order of the samples of an epoch: as they are, shuffled, drawn with weights, or shuffled with
// samples of similar lengths side by side. It depends only on the options and the epoch, and any
// part of it is computed without the parts before it. Used by many threads at once.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "data/loader.h"
#include "data/loading/sampler.h"

namespace paddle::data {

/// Places of an epoch, those that drop_last leaves out among them.
int64_t epoch_size(const Dataset& dataset, const LoaderOptions& options);

class SampleOrder {
 public:
  /// `is_padded`: batches have fields that are padded, so lengths play a role.
  SampleOrder(DatasetPtr dataset, const LoaderOptions& options, bool is_padded);

  /// The samples at the places [begin, end) of an epoch.
  std::vector<int64_t> indices(int64_t epoch, int64_t begin, int64_t end);

 private:
  /// The sample at a place of a shuffled epoch.
  using EpochOrder = std::function<int64_t(int64_t place)>;
  EpochOrder order_of(int64_t epoch) const;
  using Window = std::shared_ptr<const std::vector<int64_t>>;
  /// The samples of a window of places, ordered by length; the last few are kept.
  Window sorted_window(int64_t epoch, int64_t window, int64_t places, const EpochOrder& order);

  DatasetPtr dataset_;
  bool shuffle_ = false;
  uint64_t seed_ = 0;
  int64_t batch_size_ = 1, epoch_size_ = 0;
  int64_t length_window_ = 0;  ///< in batches; 0: lengths play no role
  std::optional<WeightedDraw> draw_;
  std::mutex window_mutex_;  ///< guards windows_
  std::deque<std::pair<std::pair<int64_t, int64_t>, Window>> windows_;
};

}  // namespace paddle::data
