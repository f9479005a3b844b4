#pragma once
// Greedy non-maximum suppression: a box is kept if it overlaps no better one by more than a
// threshold.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace paddle::cpu {

/// Kept boxes, one array per coordinate, so that a candidate is compared with all of them in vector
/// registers.
template <class T>
class KeptBoxes {
 public:
  void clear() { count_ = 0; }
  void reserve(int64_t count) {
    const auto padded = static_cast<size_t>((count + kBlock - 1) / kBlock * kBlock);
    for (auto* v : {&left_, &top_, &right_, &bottom_, &area_}) v->resize(padded);
  }
  int64_t size() const { return count_; }

  /// `extra` is 1 where the right and bottom pixels belong to a box.
  static T area(const T* box, T extra) {
    return (box[2] - box[0] + extra) * (box[3] - box[1] + extra);
  }

  /// Whether the intersection of a box with any kept one is more than `threshold` of their union.
  bool overlaps(const T* box, T box_area, T threshold, T extra) const {
    for (int64_t begin = 0; begin < count_; begin += kBlock) {
      const int64_t n = std::min(kBlock, count_ - begin);
      int found = 0;
      const T *const l = left_.data() + begin, *const t = top_.data() + begin,
                     *const r = right_.data() + begin, *const b = bottom_.data() + begin,
                     *const s = area_.data() + begin;
      for (int64_t i = 0; i < n; ++i) {
        const T width = std::min(box[2], r[i]) - std::max(box[0], l[i]) + extra;
        const T height = std::min(box[3], b[i]) - std::max(box[1], t[i]) + extra;
        const T common = std::max(width, T(0)) * std::max(height, T(0));
        const T all = box_area + s[i] - common;
        found |= (common > 0) & (common / all > threshold);
      }
      if (found) return true;
    }
    return false;
  }

  void add(const T* box, T box_area) {
    const auto i = static_cast<size_t>(count_++);
    if (i == left_.size()) reserve(std::max<int64_t>(kBlock, 2 * count_));
    left_[i] = box[0];
    top_[i] = box[1];
    right_[i] = box[2];
    bottom_[i] = box[3];
    area_[i] = box_area;
  }

 private:
  static constexpr int64_t kBlock = 64;
  std::vector<T> left_, top_, right_, bottom_, area_;
  int64_t count_ = 0;
};

}  // namespace paddle::cpu
