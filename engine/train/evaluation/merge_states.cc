#include "train/evaluation/merge_states.h"

#include <cstdint>
#include <numeric>
#include <vector>

namespace paddle::train {

void merge_states(comm::Communicator& communicator, std::span<const int> group,
                  std::span<metrics::MetricState* const> states) {
  if (group.size() < 2 || states.empty()) return;
  std::vector<int64_t> mine;
  for (const metrics::MetricState* state : states) state->append_to(mine);
  // States have lists of any length, so sizes travel first.
  const auto own_size = static_cast<int64_t>(mine.size());
  std::vector<int64_t> sizes(group.size());
  communicator.all_gather(&own_size, sizes.data(),
                          std::vector<size_t>(group.size(), sizeof(int64_t)), group);
  std::vector<size_t> bytes;
  for (const int64_t size : sizes) bytes.push_back(static_cast<size_t>(size) * sizeof(int64_t));
  std::vector<int64_t> all(
      static_cast<size_t>(std::accumulate(sizes.begin(), sizes.end(), int64_t{0})));
  communicator.all_gather(mine.data(), all.data(), bytes, group);
  for (metrics::MetricState* state : states) state->clear();
  std::span<const int64_t> rest = all;
  for (size_t rank = 0; rank < group.size(); ++rank)
    for (metrics::MetricState* state : states) state->merge(metrics::MetricState::take_from(rest));
}

}  // namespace paddle::train
