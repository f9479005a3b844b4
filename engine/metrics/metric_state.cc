#include "metrics/metric_state.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"

namespace paddle::metrics {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

template <class T>
T& grown(std::vector<T>& values, size_t at, const T& fill = {}) {
  if (values.size() <= at) values.resize(at + 1, fill);
  return values[at];
}

/// Rising unsigned numbers for rising doubles.
uint64_t order_of(double value) {
  const auto bits = std::bit_cast<uint64_t>(value == 0 ? 0.0 : value);
  return bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
}
double number_of(uint64_t order) {
  return std::bit_cast<double>(order >> 63 ? order & ~(uint64_t{1} << 63) : ~order);
}

/// Sorts long lists by digits; those that all numbers share, as the last ones of float32, cost no
/// pass.
void sort_numbers(std::vector<double>& values) {
  constexpr size_t kLong = 4096, kBits = 11, kDigits = 6, kBuckets = size_t{1} << kBits;
  if (values.size() < kLong) return std::sort(values.begin(), values.end());
  std::vector<uint64_t> now(values.size()), next(values.size());
  std::vector<size_t> counts(kDigits * kBuckets);
  const auto digit_of = [](uint64_t order, size_t digit) {
    return (order >> (digit * kBits)) & (kBuckets - 1);
  };
  for (size_t i = 0; i < values.size(); ++i) {
    now[i] = order_of(values[i]);
    for (size_t digit = 0; digit < kDigits; ++digit)
      ++counts[digit * kBuckets + digit_of(now[i], digit)];
  }
  for (size_t digit = 0; digit < kDigits; ++digit) {
    const std::span<size_t> places = std::span(counts).subspan(digit * kBuckets, kBuckets);
    if (places[digit_of(now[0], digit)] == now.size()) continue;
    size_t place = 0;
    for (size_t& each : places) place += std::exchange(each, place);
    for (const uint64_t order : now) next[places[digit_of(order, digit)]++] = order;
    std::swap(now, next);
  }
  for (size_t i = 0; i < values.size(); ++i) values[i] = number_of(now[i]);
}

std::span<const int64_t> take(std::span<const int64_t>& words, int64_t count) {
  ensure(count >= 0 && static_cast<uint64_t>(count) <= words.size(),
         "the state of a metric is cut off");
  const auto out = words.first(static_cast<size_t>(count));
  words = words.subspan(static_cast<size_t>(count));
  return out;
}

size_t take_size(std::span<const int64_t>& words) {
  const int64_t size = take(words, 1)[0];
  ensure(size >= 0 && static_cast<uint64_t>(size) <= words.size(),
         "the state of a metric is cut off");
  return static_cast<size_t>(size);
}

}  // namespace

int64_t& MetricState::count(size_t group, size_t at) { return grown(grown(counts_, group), at); }

int64_t MetricState::count(size_t group, size_t at) const {
  return at < counts(group) ? counts_[group][at] : 0;
}

size_t MetricState::counts(size_t group) const {
  return group < counts_.size() ? counts_[group].size() : 0;
}

ExactSum& MetricState::sum(size_t i) { return grown(sums_, i); }

std::array<double, 2> MetricState::sum_parts(size_t i) const {
  return i < sums_.size() ? sums_[i].parts() : std::array<double, 2>{};
}

void MetricState::note_largest(size_t i, double number) {
  double& largest = grown(largest_, i, kNothing);
  if (std::isnan(largest) || number > largest) largest = number;
}

double MetricState::largest(size_t i) const { return i < largest_.size() ? largest_[i] : kNothing; }

std::vector<double>& MetricState::list(size_t i) { return grown(lists_, i); }

std::span<const double> MetricState::list(size_t i) const {
  return i < lists_.size() ? std::span<const double>(lists_[i]) : std::span<const double>();
}

std::span<const double> MetricState::sorted(size_t i) const {
  if (i >= lists_.size()) return {};
  sort_numbers(lists_[i]);
  return lists_[i];
}

void MetricState::merge(const MetricState& other) {
  for (size_t g = 0; g < other.counts_.size(); ++g) {
    grown(counts_, g);
    for (size_t i = 0; i < other.counts_[g].size(); ++i) count(g, i) += other.counts_[g][i];
  }
  for (size_t i = 0; i < other.sums_.size(); ++i) sum(i) += other.sums_[i];
  for (size_t i = 0; i < other.largest_.size(); ++i) note_largest(i, other.largest_[i]);
  for (size_t i = 0; i < other.lists_.size(); ++i)
    list(i).insert(list(i).end(), other.lists_[i].begin(), other.lists_[i].end());
}

void MetricState::append_to(std::vector<int64_t>& words) const {
  const auto append_size = [&](size_t size) { words.push_back(static_cast<int64_t>(size)); };
  const auto append_doubles = [&](std::span<const double> values) {
    append_size(values.size());
    for (const double value : values) words.push_back(std::bit_cast<int64_t>(value));
  };
  append_size(counts_.size());
  for (const std::vector<int64_t>& group : counts_) {
    append_size(group.size());
    words.insert(words.end(), group.begin(), group.end());
  }
  append_size(sums_.size());
  for (const ExactSum& each : sums_) {
    const auto own = each.words();
    words.insert(words.end(), own.begin(), own.end());
  }
  append_doubles(largest_);
  append_size(lists_.size());
  for (const std::vector<double>& each : lists_) append_doubles(each);
}

MetricState MetricState::take_from(std::span<const int64_t>& words) {
  const auto take_doubles = [&] {
    std::vector<double> out;
    for (const int64_t word : take(words, static_cast<int64_t>(take_size(words))))
      out.push_back(std::bit_cast<double>(word));
    return out;
  };
  MetricState out;
  out.counts_.resize(take_size(words));
  for (std::vector<int64_t>& group : out.counts_) {
    const auto own = take(words, static_cast<int64_t>(take_size(words)));
    group.assign(own.begin(), own.end());
  }
  out.sums_.resize(take_size(words));
  for (ExactSum& each : out.sums_)
    each = ExactSum::from_words(take(words, ExactSum::kWords).first<ExactSum::kWords>());
  out.largest_ = take_doubles();
  out.lists_.resize(take_size(words));
  for (std::vector<double>& each : out.lists_) each = take_doubles();
  return out;
}

}  // namespace paddle::metrics
