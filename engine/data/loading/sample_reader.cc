#include "data/loading/sample_reader.h"

#include <bit>
#include <cmath>

namespace paddle::data {
namespace {

/// Whether all of them are finite, without a branch in each.
bool are_finite(const float* data, int64_t count) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t bad = 0;
  for (int64_t i = 0; i < count; ++i)
    bad |= static_cast<uint32_t>((std::bit_cast<uint32_t>(data[i]) & kExponent) == kExponent);
  return bad == 0;
}

/// The first element that is NaN, unless that stands for a missing value, or infinite; or -1.
int64_t first_not_finite(const Value& value, bool may_be_nan) {
  if (!is_float(value.dtype())) return -1;
  return visit_float(value.dtype(), [&](auto tag) -> int64_t {
    using T = typename decltype(tag)::type;
    const T* data = value.data<T>();
    if constexpr (std::is_same_v<T, float>)
      if (are_finite(data, value.size())) return -1;
    for (int64_t i = 0; i < value.size(); ++i)
      if (const auto x = static_cast<typename Accumulator<T>::type>(data[i]);
          !std::isfinite(x) && !(may_be_nan && std::isnan(x)))
        return i;
    return -1;
  });
}

}  // namespace

SampleReader::SampleReader(DatasetPtr dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)),
      pipeline_(dataset_->fields(), options.transforms),
      on_bad_sample_(options.on_bad_sample),
      nan_(options.nan) {
  require(options.ranges);
}

void SampleReader::require(std::vector<ValueRange> ranges) {
  range_fields_.clear();
  ranges_ = std::move(ranges);
  for (const ValueRange& range : ranges_) {
    const int64_t field = dataset_->find_field(range.field);
    if (field < 0) fail(ErrorCode::kConfig, "no field '", range.field, "' to check");
    range_fields_.push_back(field);
  }
}

void SampleReader::read(int64_t index, const ReadContext& context, Workspace& workspace) const {
  const bool may_skip = on_bad_sample_ == BadSamplePolicy::kSkip;
  try {
    dataset_->read(index, context, workspace.sample);
  } catch (const Error& error) {
    if (may_skip && error.code() == ErrorCode::kData) throw BadSample{error.what()};
    if (on_bad_sample_ == BadSamplePolicy::kKeep && error.code() == ErrorCode::kData)
      throw Error(error.code(),
                  error.message() + " (`on_bad_sample: keep` cannot keep this sample)",
                  error.location());
    throw;
  }
  check_finite(index, workspace.sample);
  try {
    pipeline_.apply(workspace.sample, index, context, workspace.scratch);
  } catch (const Error& error) {
    const std::string reason = str(dataset_->location(index), ": ", error.message());
    if (may_skip && error.code() == ErrorCode::kData) throw BadSample{reason};
    fail(error.code(), reason);
  }
  check_transformed(index, workspace.sample);
  try {
    check_ranges(index, workspace.sample);
  } catch (const Error& error) {
    if (may_skip) throw BadSample{error.what()};
    throw;
  }
}

void SampleReader::not_finite(const std::string& where, double number, const char* from) const {
  const char* what = std::isnan(number) ? "NaN" : "infinity";
  if (nan_ == NanPolicy::kSkip) throw BadSample{str(where, ": ", what, from)};
  fail(ErrorCode::kData, where, ": ", what, from[0] != '\0' ? from : " in the data",
       " (nan: skip leaves such samples out, nan: keep allows them)");
}

void SampleReader::check_finite(int64_t index, const Sample& sample) const {
  if (nan_ == NanPolicy::kKeep) return;
  for (size_t f = 0; f < sample.size(); ++f) {
    const int64_t element = first_not_finite(sample[f], dataset_->fields()[f].may_be_nan);
    if (element < 0) continue;
    not_finite(dataset_->location(index, static_cast<int64_t>(f), element),
               sample[f].number(element), "");
  }
}

/// A transform may leave the range of its type: 70000 as float16, or 1e38 times 10.
void SampleReader::check_transformed(int64_t index, const Sample& sample) const {
  if (nan_ == NanPolicy::kKeep) return;
  for (size_t f = 0; f < sample.size(); ++f) {
    if (!pipeline_.changes(f)) continue;
    const int64_t element = first_not_finite(sample[f], dataset_->fields()[f].may_be_nan);
    if (element < 0) continue;
    const bool same_elements = sample[f].shape() == dataset_->fields()[f].shape;
    not_finite(dataset_->location(index, static_cast<int64_t>(f), same_elements ? element : -1),
               sample[f].number(element), ", which the transforms make of its value");
  }
}

void SampleReader::check_ranges(int64_t index, const Sample& sample) const {
  for (size_t r = 0; r < ranges_.size(); ++r) {
    const ValueRange& range = ranges_[r];
    const int64_t field = range_fields_[r];
    const Value& value = sample[static_cast<size_t>(field)];
    if (!is_integer(value.dtype())) continue;
    const bool same_elements =
        value.shape() == dataset_->fields()[static_cast<size_t>(field)].shape;
    for (int64_t i = 0; i < value.size(); ++i) {
      const double number = value.number(i);
      if (range.also && number == static_cast<double>(*range.also)) continue;
      if (number < static_cast<double>(range.low) || number >= static_cast<double>(range.high))
        fail(ErrorCode::kData, dataset_->location(index, field, same_elements ? i : -1), ": ",
             range.field, " ", static_cast<int64_t>(number), " is outside ", range.low, "..",
             range.high - 1, ", which the model takes");
    }
  }
}

}  // namespace paddle::data
