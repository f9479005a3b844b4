#include "data/loading/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace paddle::data {
namespace {

constexpr int64_t kMaxClasses = 1 << 20;

/// The field of one number per sample; kConfig for another one.
int64_t scalar_field(const Dataset& dataset, const std::string& key, const std::string& name,
                     bool is_class) {
  std::vector<std::string> names;
  for (const Field& field : dataset.fields()) names.push_back(field.name);
  const int64_t at = dataset.find_field(name);
  if (at < 0)
    fail(ErrorCode::kConfig, key, ": no field '", name, "'", did_you_mean(name, names),
         "; there are: ", join(names, ", "));
  const Field& field = dataset.fields()[static_cast<size_t>(at)];
  const bool single = field.shape.empty() || (field.shape.size() == 1 && field.shape[0] == 1);
  if (!single || (is_class && !is_integer(field.dtype)))
    fail(ErrorCode::kConfig, key, ": expected a field of one ",
         is_class ? "class number" : "number", " per sample, ", field.text(), " is not");
  return at;
}

/// The class of each sample; -1 for one that is not counted.
std::vector<int64_t> classes_of(const Dataset& dataset, const std::string& key,
                                const std::string& name) {
  const int64_t field = scalar_field(dataset, key, name, true);
  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(dataset.size()));
  Sample sample;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    auto id = dataset.class_of(i, field);
    if (!id) try {
        dataset.read(i, {}, sample);
        id = static_cast<int64_t>(sample[static_cast<size_t>(field)].number(0));
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kData) throw;
        id = -1;  // a bad sample, which the loader reports
      }
    if (*id >= kMaxClasses)
      fail(ErrorCode::kData, dataset.location(i, field), ": class ", *id, " of ", key, ", at most ",
           kMaxClasses - 1, " is possible");
    out.push_back(std::max<int64_t>(*id, -1));
  }
  return out;
}

std::vector<int64_t> count(const std::vector<int64_t>& classes, int64_t least) {
  std::vector<int64_t> counts(static_cast<size_t>(std::min(least, kMaxClasses)));
  for (const int64_t id : classes) {
    if (id < 0) continue;
    if (static_cast<size_t>(id) >= counts.size()) counts.resize(static_cast<size_t>(id) + 1);
    ++counts[static_cast<size_t>(id)];
  }
  return counts;
}

int64_t declared_classes(const Dataset& dataset, const std::string& field) {
  return dataset.fields()[static_cast<size_t>(dataset.find_field(field))].class_count;
}

}  // namespace

std::vector<int64_t> class_counts(const Dataset& dataset, const std::string& field) {
  // This checks the name of the field, too.
  const std::vector<int64_t> classes = classes_of(dataset, "class_weights", field);
  return count(classes, declared_classes(dataset, field));
}

std::vector<double> sample_weights(const Dataset& dataset, const SamplerOptions& options) {
  std::vector<double> weights;
  weights.reserve(static_cast<size_t>(dataset.size()));
  if (options.kind == SamplerOptions::Kind::kBalanced) {
    const std::vector<int64_t> classes = classes_of(dataset, "sampler", options.field);
    const std::vector<int64_t> counts = count(classes, declared_classes(dataset, options.field));
    for (const int64_t id : classes)
      weights.push_back(
          id < 0 ? 0
                 : std::pow(static_cast<double>(counts[static_cast<size_t>(id)]), -options.power));
  } else {
    const int64_t field = scalar_field(dataset, "sampler", options.field, false);
    Sample sample;
    for (int64_t i = 0; i < dataset.size(); ++i) {
      dataset.read(i, {}, sample);
      const double weight = sample[static_cast<size_t>(field)].number(0);
      if (!(weight >= 0) || !std::isfinite(weight))
        fail(ErrorCode::kData, dataset.location(i, field), ": the weight is ",
             format_double(weight), ", expected a number of at least 0");
      weights.push_back(weight);
    }
  }
  if (std::none_of(weights.begin(), weights.end(), [](double w) { return w > 0; }))
    fail(ErrorCode::kData, "sampler: every sample of the field '", options.field,
         "' has the weight 0");
  return weights;
}

std::vector<double> class_weights(const Dataset& dataset, const ClassWeightOptions& options) {
  const std::vector<int64_t> counts = class_counts(dataset, options.field);
  double samples = 0, sum = 0;
  for (const int64_t n : counts) {
    if (n == 0) continue;
    samples += static_cast<double>(n);
    sum += std::pow(static_cast<double>(n), 1 - options.power);
  }
  if (samples == 0)
    fail(ErrorCode::kData, "class_weights: no sample of '", options.field, "' has a class");
  std::vector<double> out;
  for (const int64_t n : counts)
    out.push_back(n == 0 ? 1 : std::pow(static_cast<double>(n), -options.power) * samples / sum);
  return out;
}

WeightedDraw::WeightedDraw(const std::vector<double>& weights) {
  double sum = 0;
  for (const double weight : weights) sums_.push_back(sum += weight);
}

int64_t WeightedDraw::operator()(double uniform) const {
  const auto at = std::upper_bound(sums_.begin(), sums_.end(), uniform * sums_.back());
  // Rounding may reach the end: the last sample with a weight is the answer.
  const auto last = std::lower_bound(sums_.begin(), sums_.end(), sums_.back());
  return std::min(at, last) - sums_.begin();
}

}  // namespace paddle::data
