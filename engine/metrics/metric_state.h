#pragma once
// The state of a metric as numbers that merge without knowing the metric: counts and sums are added
// up, lists are joined. What a metric has seen may be divided among batches and processes in any
// way: its state, and so its result, has the same bits, as long as the result does not depend on
// the order within lists.

#include <cstdint>
#include <span>
#include <vector>

#include "metrics/exact_sum.h"
#include "metrics/number_list.h"

namespace paddle::metrics {

class MetricState {
 public:
  void clear() { *this = {}; }

  // Each group of counts, each sum and each list comes into being, as zeros or empty, when it is
  // first changed.

  /// Entry `at` of a group of counts: a histogram, or a few numbers.
  int64_t& count(size_t group, size_t at);
  int64_t count(size_t group, size_t at) const;
  size_t counts(size_t group) const;  ///< entries of the group so far
  ExactSum& sum(size_t i);
  double sum(size_t i) const { return sum_parts(i)[0]; }
  std::array<double, 2> sum_parts(size_t i) const;
  /// The largest of numbers that were given; NaN without any.
  void note_largest(size_t i, double number);
  double largest(size_t i) const;
  NumberList& list(size_t i);
  std::span<const double> list(size_t i) const;
  /// The same in rising order, without NaNs among them.
  std::span<const double> sorted(size_t i) const;
  size_t lists() const { return lists_.size(); }

  void merge(const MetricState& other);

  /// For messages: appends the state to `words`.
  void append_to(std::vector<int64_t>& words) const;
  /// Takes what `append_to` has written from the front of `words`. kInternal if it is something
  /// else.
  static MetricState take_from(std::span<const int64_t>& words);

 private:
  std::vector<std::vector<int64_t>> counts_;
  std::vector<ExactSum> sums_;
  std::vector<double> largest_;            ///< NaN where nothing was given
  mutable std::vector<NumberList> lists_;  ///< `sorted` orders them in place
};

}  // namespace paddle::metrics
