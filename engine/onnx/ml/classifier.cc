#include "onnx/ml/classifier.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "onnx/ops/helpers.h"

namespace paddle::onnx {
namespace {

/// Inverse of the normal distribution, by Winitzki's approximation of the inverse error function
/// ("A handy approximation for the error function and its inverse", 2008).
float probit(float p) {
  const float x = 2 * p - 1;
  const float log = std::log((1 - x) * (1 + x));
  const float v = 2 / (3.14159f * 0.147f) + 0.5f * log;
  const float root = std::sqrt(std::sqrt(v * v - log / 0.147f) - v);
  return 1.41421356f * (x < 0 ? -root : root);
}

void softmax(std::vector<float>& scores, bool skip_zeros) {
  const float most = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& s : scores) {
    if (skip_zeros && std::abs(s) <= 1e-7f) {
      s *= std::exp(-most);
      continue;
    }
    s = std::exp(s - most);
    sum += s;
  }
  for (float& s : scores) s /= sum;
}

}  // namespace

float logistic(float x) {
  const float y = 1 / (1 + std::exp(-std::abs(x)));
  return x < 0 ? 1 - y : y;
}

Array feature_rows(const NodeCall& c, size_t i, bool keep_float64) {
  Array x = c.constant_array(i);
  c.check(x.ndim() == 1 || x.ndim() == 2, "input ", i, " must be rows of features, not ",
          str(x.shape));
  c.check(info(x.dtype).has_kernels, "input ", i, " is ", paddle::text(x.dtype));
  if (!(keep_float64 && x.dtype == DType::kF64)) x = x.cast(DType::kF32);
  if (x.ndim() == 1) {
    x.shape = {1, x.shape[0]};
    x.strides = contiguous_strides(x.shape);
  }
  return x.contiguous();
}

Array score_matrix(DType dtype, int64_t rows, int64_t columns) {
  if (columns > 0 && rows > limits().memory / 2 / item_size(dtype) / columns)
    fail(ErrorCode::kModel, "scores of ", rows, " rows and ", columns,
         " columns take more than half of the memory");
  return Array::zeros(dtype, {rows, columns});
}

Labels Labels::of(const NodeCall& c, const char* strings, const char* integers) {
  Labels out;
  out.strings_ = c.strings_attr(strings);
  out.integers_ = c.ints_attr(integers);
  return out;
}

Value Labels::all() const {
  const auto n = static_cast<int64_t>(size());
  if (are_strings()) return Value::of_strings({n}, strings_);
  return Value(Tensor(Array::from(integers_, {n})));
}

Value Labels::at(const std::vector<size_t>& indices) const {
  const auto n = static_cast<int64_t>(indices.size());
  if (are_strings()) {
    std::vector<std::string> out;
    for (const size_t p : indices) out.push_back(strings_.at(p));
    return Value::of_strings({n}, std::move(out));
  }
  std::vector<int64_t> out;
  for (const size_t p : indices) out.push_back(integers_.at(p));
  return Value(Tensor(Array::from(out, {n})));
}

Labels Labels::binary() const {
  if (size() == 2) return *this;
  Labels out;
  if (are_strings())
    out.strings_ = {"0", "1"};
  else
    out.integers_ = {0, 1};
  return out;
}

PostTransform post_transform(const NodeCall& c) {
  const std::string name = c.string_attr("post_transform", "NONE");
  constexpr std::string_view kNames[] = {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return static_cast<PostTransform>(i);
  c.reject("unknown post_transform '", name, "'");
}

void apply_post_transform(std::vector<float>& scores, PostTransform transform, SecondClass second) {
  if (scores.size() == 1) {
    if (transform == PostTransform::kProbit) {
      scores[0] = probit(scores[0]);
    } else if (second != SecondClass::kNone) {
      const float score = scores[0];
      if (transform == PostTransform::kLogistic)
        scores = {logistic(-score), logistic(score)};
      else
        scores = {second == SecondClass::kComplement ? 1 - score : -score, score};
    }
    return;
  }
  switch (transform) {
    case PostTransform::kNone:
      return;
    case PostTransform::kLogistic:
      std::transform(scores.begin(), scores.end(), scores.begin(), logistic);
      return;
    case PostTransform::kProbit:
      std::transform(scores.begin(), scores.end(), scores.begin(), probit);
      return;
    case PostTransform::kSoftmax:
    case PostTransform::kSoftmaxZero:
      if (!scores.empty()) softmax(scores, transform == PostTransform::kSoftmaxZero);
  }
}

}  // namespace paddle::onnx
