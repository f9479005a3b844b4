#include "metrics/score_layout.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace paddle::metrics {
namespace {

enum class LayoutMatch { kNo, kMaybe, kYes };

bool is_one(const Dim& d) { return d.constant() == 1; }

LayoutMatch match(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return LayoutMatch::kNo;
  LayoutMatch out = LayoutMatch::kYes;
  for (size_t i = 0; i < a.size(); ++i) {
    const std::optional<bool> equal = a[i].equals(b[i]);
    if (equal == false) return LayoutMatch::kNo;
    if (!equal) out = LayoutMatch::kMaybe;
  }
  return out;
}

Shape without(Shape shape, size_t axis) {
  shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  return shape;
}

/// Whether labels have the shape of the scores without `axis`, or 1 in its place.
LayoutMatch fit(const Shape& scores, const Shape& labels, size_t axis) {
  const Shape expected = without(scores, axis);
  const LayoutMatch direct = match(expected, labels);
  if (direct != LayoutMatch::kNo) return direct;
  return labels.size() == scores.size() && is_one(labels[axis])
             ? match(expected, without(labels, axis))
             : LayoutMatch::kNo;
}

Shape squeezed(const Shape& shape) {
  Shape out;
  for (size_t i = 0; i < shape.size(); ++i)
    if (i == 0 || !is_one(shape[i])) out.push_back(shape[i]);
  return out;
}

}  // namespace

ScoreLayout score_layout(const std::string& metric, const Shape& scores, const Shape& labels,
                         std::optional<int64_t> axis, bool multilabel, ErrorCode code) {
  const auto rank = static_cast<int64_t>(scores.size());
  if (multilabel) {
    if (axis) fail(code, metric, ": axis has no metadata with multilabel=true");
    if (match(scores, labels) == LayoutMatch::kNo)
      fail(code, metric, ": with multilabel=true input and label must have the same shape, found ",
           text(scores), " and ", text(labels));
    return {-1, true};
  }
  if (axis) {
    const int64_t at = *axis < 0 ? *axis + rank : *axis;
    if (at < 0 || at >= rank)
      fail(code, metric, ": axis ", *axis, " is out of range for input ", text(scores));
    if (fit(scores, labels, static_cast<size_t>(at)) == LayoutMatch::kNo)
      fail(code, metric, ": input ", text(scores), " with its classes along axis ", *axis,
           " needs labels of shape ", text(without(scores, static_cast<size_t>(at))), ", found ",
           text(labels));
    return {at, is_one(scores[static_cast<size_t>(at)])};
  }
  // One score per label: equal shapes but for axes of size 1.
  const Shape flat_scores = squeezed(scores), flat_labels = squeezed(labels);
  const LayoutMatch last =
      rank >= 2 ? fit(scores, labels, static_cast<size_t>(rank - 1)) : LayoutMatch::kNo;
  const LayoutMatch second = rank >= 3 ? fit(scores, labels, 1) : LayoutMatch::kNo;
  if (match(flat_scores, flat_labels) != LayoutMatch::kNo &&
      (flat_scores.size() <= 1 || (rank >= 2 && is_one(scores[1])) || is_one(scores.back())))
    return {-1, true};
  if (last == LayoutMatch::kYes && second == LayoutMatch::kYes)
    fail(code, metric, ": the class axis of input ", text(scores), " with labels ", text(labels),
         " may be 1 or -1; give axis=1 or axis=-1");
  if (last != LayoutMatch::kNo && second != LayoutMatch::kYes) return {rank - 1, false};
  if (second != LayoutMatch::kNo) return {1, false};
  if (match(scores, labels) != LayoutMatch::kNo)
    fail(code, metric, ": input and label have the same shape ", text(scores),
         "; for one-hot labels ", "write ", metric,
         "(input, argmax(label, axis=-1)), for independent binary decisions give "
         "multilabel=true");
  fail(code, metric, ": labels of shape ", text(labels), " do not fit input ", text(scores),
       "; expected the shape of the input without its class axis (the last one or axis 1), or one "
       "score per label");
}

ScoreRows::ScoreRows(const std::string& metric, const Array& scores, const Array& labels,
                     const ScoreLayout& layout)
    : metric_(metric),
      scores_(scores.cast(DType::kF64).contiguous()),
      labels_(labels.cast(DType::kF64).contiguous()),
      binary_(layout.binary) {
  if (layout.axis >= 0) {
    const auto at = static_cast<size_t>(layout.axis);
    classes_ = scores.shape.at(at);
    for (size_t i = at + 1; i < scores.shape.size(); ++i) inner_ *= scores.shape[i];
    inner_ = std::max<int64_t>(inner_, 1);
  }
  if (scores_.size() != labels_.size() * classes_)
    fail(ErrorCode::kData, metric, ": ", scores_.size(), " scores of ", classes_, " classes for ",
         labels_.size(), " labels");
}

void ScoreRows::scores(int64_t row, std::vector<double>& out) const {
  out.resize(static_cast<size_t>(classes_));
  for (int64_t c = 0; c < classes_; ++c) out[static_cast<size_t>(c)] = score(row, c);
}

std::optional<int64_t> ScoreRows::label(int64_t row, int64_t ignored) const {
  const double value = labels_.data<double>()[row];
  if (value == static_cast<double>(ignored)) return std::nullopt;
  if (binary_) {
    if (value != 0 && value != 1)
      fail(ErrorCode::kData, metric_, ": label ", format_double(value),
           " is neither 0 nor 1; compare it in the expression, for example ", metric_,
           "(score, label > 0)");
  } else if (!(value >= 0 && value < static_cast<double>(classes_)) || value != std::floor(value)) {
    fail(ErrorCode::kData, metric_, ": label ", format_double(value), " is not a class in 0 … ",
         classes_ - 1, " (ignore_index is ", ignored, ")");
  }
  return static_cast<int64_t>(value);
}

}  // namespace paddle::metrics
