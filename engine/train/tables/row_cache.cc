#include "train/tables/row_cache.h"

#include <cstring>
#include <utility>

namespace paddle::train {
namespace {

/// Bytes of a row besides its own: key, step and four cells of the index.
constexpr size_t kRowOverhead = 6 * sizeof(int64_t);

}  // namespace

RowCache::RowCache(size_t row_bytes, uint64_t bytes, int refresh)
    : row_bytes_(row_bytes),
      capacity_(static_cast<int64_t>(bytes / 2 / (row_bytes + kRowOverhead))),
      refresh_(refresh) {}

const std::byte* RowCache::find(const Generation& from, uint64_t key, int64_t step) const {
  const int64_t number = from.keys.find(key);
  if (number < 0) return nullptr;
  const auto at = static_cast<size_t>(number);
  return step < from.steps[at] + refresh_ ? from.rows.data() + at * row_bytes_ : nullptr;
}

const std::byte* RowCache::find(uint64_t key, int64_t step) const {
  const std::byte* const row = find(young_, key, step);
  return row ? row : find(old_, key, step);
}

void RowCache::put(uint64_t key, const std::byte* row, int64_t step) {
  if (capacity_ == 0) return;
  if (young_.keys.size() == capacity_ && young_.keys.find(key) < 0)
    old_ = std::exchange(young_, {});
  const auto at = static_cast<size_t>(young_.keys.add(key));
  if (at == young_.steps.size()) {
    young_.steps.push_back(step);
    young_.rows.insert(young_.rows.end(), row, row + row_bytes_);
    return;
  }
  young_.steps[at] = step;
  std::memcpy(young_.rows.data() + at * row_bytes_, row, row_bytes_);
}

void RowCache::clear() {
  young_ = {};
  old_ = {};
}

}  // namespace paddle::train
