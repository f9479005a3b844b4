#include "metrics/metric_state.h"

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

NumberList& MetricState::list(size_t i) { return grown(lists_, i); }

std::span<const double> MetricState::list(size_t i) const {
  return i < lists_.size() ? lists_[i] : std::span<const double>();
}

std::span<const double> MetricState::sorted(size_t i) const {
  if (i >= lists_.size()) return {};
  lists_[i].sort();
  return lists_[i];
}

void MetricState::merge(const MetricState& other) {
  for (size_t g = 0; g < other.counts_.size(); ++g) {
    grown(counts_, g);
    for (size_t i = 0; i < other.counts_[g].size(); ++i) count(g, i) += other.counts_[g][i];
  }
  for (size_t i = 0; i < other.sums_.size(); ++i) sum(i) += other.sums_[i];
  for (size_t i = 0; i < other.largest_.size(); ++i) note_largest(i, other.largest_[i]);
  for (size_t i = 0; i < other.lists_.size(); ++i) list(i).append(other.lists_[i]);
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
  for (const NumberList& each : lists_) append_doubles(each);
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
  for (NumberList& each : out.lists_) each.append(take_doubles());
  return out;
}

}  // namespace paddle::metrics
