#include "data/target_scale.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace paddle::data {

TargetScale::TargetScale(const std::string& field, std::span<const Fitted> fitted,
                         std::span<const TransformOptions> transforms)
    : field_(field) {
  if (const Fitted* known = find_fitted(fitted, field)) {
    log_ = known->log;
    if (!known->shift.empty()) {
      Affine step{known->factor, {}};
      for (size_t c = 0; c < known->shift.size(); ++c)
        step.offset.push_back(-known->shift[c] * known->factor[c]);
      steps_.push_back(std::move(step));
    }
  }
  for (const TransformOptions& t : transforms) {
    if (std::find(t.fields.begin(), t.fields.end(), field) == t.fields.end()) continue;
    if (t.kind == TransformKind::kScale) {
      steps_.push_back({{t.factor}, {t.offset}});
    } else if (t.kind == TransformKind::kNormalize) {
      Affine step;
      const size_t count = std::max(t.mean.size(), t.deviation.size());
      const auto pick = [](const std::vector<double>& list, size_t c, double otherwise) {
        return list.empty() ? otherwise : list.size() == 1 ? list[0] : list[c];
      };
      for (size_t c = 0; c < count; ++c) {
        const double deviation = pick(t.deviation, c, 1);
        step.factor.push_back(1 / deviation);
        step.offset.push_back(-pick(t.mean, c, 0) / deviation);
      }
      steps_.push_back(std::move(step));
    }
  }
  for (const Affine& step : steps_) columns_ = std::max(columns_, step.factor.size());
}

double TargetScale::restored(double value, size_t column) const {
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    const size_t c = step->factor.size() == 1 ? 0 : column;
    value = (value - step->offset[c]) / step->factor[c];
  }
  return log_ ? std::copysign(std::expm1(std::abs(value)), value) : value;
}

TargetScale TargetScale::of_columns(const std::vector<int64_t>& chosen) const {
  TargetScale out = *this;
  out.columns_ = 1;
  for (Affine& step : out.steps_) {
    if (step.factor.size() == 1) continue;
    const Affine all = std::exchange(step, {});
    for (const int64_t column : chosen) {
      step.factor.push_back(all.factor.at(static_cast<size_t>(column)));
      step.offset.push_back(all.offset.at(static_cast<size_t>(column)));
    }
    out.columns_ = chosen.size();
  }
  return out;
}

std::pair<double, double> TargetScale::inverse(size_t column) const {
  double factor = 1, offset = 0;
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    const size_t c = step->factor.size() == 1 ? 0 : column;
    factor /= step->factor[c];
    offset = (offset - step->offset[c]) / step->factor[c];
  }
  return {factor, offset};
}

double TargetScale::factor(size_t column) const {
  double out = 1;
  for (const Affine& step : steps_) out *= step.factor[step.factor.size() == 1 ? 0 : column];
  return std::abs(out);
}

Array TargetScale::restored(const Array& values) const {
  const Array packed = values.contiguous();
  const auto last = static_cast<size_t>(packed.shape.empty() ? 1 : packed.shape.back());
  if (columns_ > 1 && last != columns_)
    fail(ErrorCode::kData, "field '", field_, "' has ", columns_,
         " scaled columns, the values have ", last);
  Array out = Array::empty(packed.dtype, packed.shape);
  visit_float(packed.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < packed.size(); ++i)
      out.data<T>()[i] = static_cast<T>(static_cast<typename Accumulator<T>::type>(
          restored(packed.number(i), static_cast<size_t>(i) % last)));
  });
  return out;
}

}  // namespace paddle::data
