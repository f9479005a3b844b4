#include "data/datasets/split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "data/cells.h"
#include "tensor/random.h"

namespace paddle::data {
namespace {

/// Shares in an order that does not depend on how they are written: training, validation, test,
/// then other names alphabetically.
std::vector<std::pair<std::string, double>> in_canonical_order(
    std::vector<std::pair<std::string, double>> shares) {
  constexpr std::array<std::string_view, 7> kOrder = {"train", "training",   "valid", "val",
                                                      "dev",   "validation", "test"};
  const auto rank = [&](const std::string& name) {
    return std::find(kOrder.begin(), kOrder.end(), name) - kOrder.begin();
  };
  std::sort(shares.begin(), shares.end(), [&](const auto& a, const auto& b) {
    return std::pair(rank(a.first), a.first) < std::pair(rank(b.first), b.first);
  });
  return shares;
}

/// Which places of an order of `size` the part has: those from begin to end, or all others.
struct Places {
  double begin = 0, end = 1;  ///< shares
  bool others = false;
  bool has(double place, int64_t size) const {
    const auto at = [&](double share) {
      return static_cast<double>(std::llround(share * static_cast<double>(size)));
    };
    return (place >= at(begin) && place < at(end)) != others;
  }
};

Places places_of(const DatasetOptions& options) {
  if (options.folds == 0) {
    const auto [begin, end] = bounds_of_part(options);
    return {begin, end};
  }
  if (!options.split.empty()) fail(ErrorCode::kConfig, "folds: give either `folds` or `split`");
  if (options.folds < 2) fail(ErrorCode::kConfig, "folds is ", options.folds, ", at least 2");
  if (options.fold < 0 || options.fold >= options.folds)
    fail(ErrorCode::kConfig, "fold is ", options.fold, ", 0 to ", options.folds - 1,
         " are possible");
  if (options.part != "train" && options.part != "valid")
    fail(ErrorCode::kConfig, "folds: `part` must be train or valid, found '", options.part, "'");
  const auto folds = static_cast<double>(options.folds);
  return {static_cast<double>(options.fold) / folds, static_cast<double>(options.fold + 1) / folds,
          options.part == "train"};
}

/// The keys of all samples.
std::vector<std::string> keys_of(const Dataset& dataset, const std::string& column,
                                 const char* option) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    auto key = dataset.key_of(i, column);
    if (!key)
      fail(ErrorCode::kConfig, option, ": ", dataset.location(i), " has no column or class '",
           column, "'");
    out.push_back(std::move(*key));
  }
  return out;
}

using Groups = std::map<std::string, std::vector<int64_t>>;
Groups group_by(const std::vector<std::string>& keys) {
  Groups out;
  for (size_t i = 0; i < keys.size(); ++i) out[keys[i]].push_back(static_cast<int64_t>(i));
  return out;
}

std::vector<int64_t> stratified(const Groups& classes, const Places& places, uint64_t seed) {
  std::vector<int64_t> out;
  for (const auto& [key, samples] : classes) {
    const auto size = static_cast<int64_t>(samples.size());
    const Permutation order(static_cast<uint64_t>(size), seed, stream_of("stratify " + key));
    for (int64_t place = 0; place < size; ++place)
      if (places.has(static_cast<double>(place), size))
        out.push_back(samples[order(static_cast<uint64_t>(place))]);
  }
  return out;
}

/// Runs of samples that stay together: each goes where its middle lies.
std::vector<int64_t> whole_runs(const std::vector<const std::vector<int64_t>*>& runs,
                                const Places& places, int64_t size) {
  std::vector<int64_t> out;
  int64_t before = 0;
  for (const std::vector<int64_t>* run : runs) {
    const double middle = static_cast<double>(before) + static_cast<double>(run->size()) / 2 - 0.5;
    if (places.has(middle, size)) out.insert(out.end(), run->begin(), run->end());
    before += static_cast<int64_t>(run->size());
  }
  return out;
}

std::vector<int64_t> grouped(const Groups& groups, const Places& places, int64_t size,
                             uint64_t seed) {
  std::vector<const std::vector<int64_t>*> sorted, runs;
  for (const auto& [key, samples] : groups) sorted.push_back(&samples);
  const Permutation order(sorted.size(), seed, stream_of("group"));
  for (size_t i = 0; i < sorted.size(); ++i) runs.push_back(sorted[order(i)]);
  return whole_runs(runs, places, size);
}

/// Times (data/cells.h) and numbers by value if all keys are some, else texts in order.
std::vector<int64_t> by_time(const Groups& times, const Places& places, int64_t size) {
  TimeFormDetector detector;
  for (const auto& [key, samples] : times) detector.observe(key);
  std::vector<std::pair<double, const std::vector<int64_t>*>> moments;
  for (const auto& [key, samples] : times)
    if (const auto moment = parse_time(key, detector.form()))
      moments.emplace_back(*moment, &samples);
  std::vector<const std::vector<int64_t>*> runs;
  if (moments.size() == times.size()) {
    std::stable_sort(moments.begin(), moments.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [moment, samples] : moments) runs.push_back(samples);
  } else {
    for (const auto& [key, samples] : times) runs.push_back(&samples);
  }
  return whole_runs(runs, places, size);
}

}  // namespace

std::pair<double, double> bounds_of_part(const DatasetOptions& options) {
  if (options.part.empty())
    fail(ErrorCode::kConfig, "split: `part` must say which of the shares is used");
  double total = 0;
  std::vector<std::string> names;
  for (const auto& [name, share] : options.split) {
    if (!(share >= 0)) fail(ErrorCode::kConfig, "split: the share of '", name, "' is ", share);
    total += share;
    names.push_back(name);
  }
  if (total > 1 + 1e-9)
    fail(ErrorCode::kConfig, "split: the shares add up to ", total, ", more than 1");
  double before = 0;
  for (const auto& [name, share] : in_canonical_order(options.split)) {
    if (name == options.part) return {before, std::min(before + share, 1.0)};
    before += share;
  }
  fail(ErrorCode::kConfig, "split: no part '", options.part, "'", did_you_mean(options.part, names),
       "; there are: ", join(names, ", "));
}

bool splits_by_samples(const DatasetOptions& options) {
  return options.folds > 0 || !options.split_stratify.empty() || !options.split_group.empty() ||
         !options.split_time.empty();
}

std::vector<int64_t> split_by_samples(const Dataset& dataset, const DatasetOptions& options) {
  const int ways = static_cast<int>(!options.split_stratify.empty()) +
                   static_cast<int>(!options.split_group.empty()) +
                   static_cast<int>(!options.split_time.empty());
  if (ways > 1)
    fail(ErrorCode::kConfig, "split: give one of split_stratify, split_group and split_time");
  if (options.split_in_order)
    fail(ErrorCode::kConfig, "split_in_order: has no effect with ",
         ways > 0 ? "a split by a column" : "folds");
  if (options.split.empty() && options.folds == 0)
    fail(ErrorCode::kConfig, "split: the shares are missing, such as split: {train: 0.8, ",
         "valid: 0.2}, or folds: 5");
  const Places places = places_of(options);
  const int64_t size = dataset.size();
  std::vector<int64_t> out;
  if (!options.split_stratify.empty()) {
    out = stratified(group_by(keys_of(dataset, options.split_stratify, "split_stratify")), places,
                     options.split_seed);
  } else if (!options.split_group.empty()) {
    out = grouped(group_by(keys_of(dataset, options.split_group, "split_group")), places, size,
                  options.split_seed);
  } else if (!options.split_time.empty()) {
    out = by_time(group_by(keys_of(dataset, options.split_time, "split_time")), places, size);
  } else {
    const Permutation order(static_cast<uint64_t>(size), options.split_seed, stream_of("split"));
    for (int64_t place = 0; place < size; ++place)
      if (places.has(static_cast<double>(place), size))
        out.push_back(static_cast<int64_t>(order(static_cast<uint64_t>(place))));
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string describe_split(const DatasetOptions& options) {
  std::string out;
  if (!options.split_stratify.empty())
    out = str("every class of '", options.split_stratify, "' in its share");
  else if (!options.split_group.empty())
    out = str("groups of '", options.split_group, "' as a whole");
  else if (!options.split_time.empty())
    out = str("in the order of '", options.split_time, "'");
  if (options.folds > 0)
    out += str(out.empty() ? "" : ", ", "fold ", options.fold, " of ", options.folds);
  return out;
}

}  // namespace paddle::data
