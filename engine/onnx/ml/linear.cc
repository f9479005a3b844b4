// LinearClassifier and LinearRegressor of ai.onnx.ml.

#include <algorithm>

#include "onnx/ml/classifier.h"
#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// Coefficients as a matrix with one row per target.
Tensor coefficients(const NodeCall& c, int64_t targets) {
  const auto values = c.floats_attr("coefficients");
  c.check(targets > 0 && !values.empty() && static_cast<int64_t>(values.size()) % targets == 0,
          "there are ", values.size(), " coefficients for ", targets, " targets");
  const auto width = static_cast<int64_t>(values.size()) / targets;
  return Tensor(Array::from(values, {targets, width}).cast(DType::kF32));
}

Tensor intercepts(const NodeCall& c, int64_t targets) {
  const auto values = c.floats_attr("intercepts");
  c.check(values.empty() || static_cast<int64_t>(values.size()) == targets, "there are ",
          values.size(), " intercepts for ", targets, " targets");
  return values.empty() ? ops::zeros(Shape{Dim(targets)}, DType::kF32)
                        : Tensor(Array::from(values, {targets}).cast(DType::kF32));
}

/// x W^T + b.
Tensor linear_scores(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return ops::matmul(x, weight, false, true) + bias;
}

Values linear_regressor(NodeCall& c) {
  const int64_t targets = c.int_attr("targets", 1);
  const Tensor weight = coefficients(c, targets), bias = intercepts(c, targets);
  const PostTransform transform = post_transform(c);
  const Tensor& x = c.tensor(0);
  c.check(x.ndim() == 1 || x.ndim() == 2, "the input must be rows of features, not ", x.type());
  Tensor rows = ops::cast(x, DType::kF32);
  if (x.ndim() == 1) rows = ops::unsqueeze(rows, {0});
  const Tensor y = linear_scores(rows, weight, bias);
  if (transform == PostTransform::kNone || (targets == 1 && transform != PostTransform::kProbit))
    return {y};
  if (!y.is_concrete())
    throw DataDependentError(ErrorCode::kModel, "this post_transform runs eagerly, row by row");
  Array out = Array::empty(DType::kF32, {y.array().shape[0], targets});
  const Array from = y.array().contiguous();
  for (int64_t r = 0; r < out.shape[0]; ++r) {
    const float* row = from.data<float>() + r * targets;
    std::vector<float> scores(row, row + targets);
    apply_post_transform(scores, transform);
    std::copy(scores.begin(), scores.end(), out.data<float>() + r * targets);
  }
  return {Tensor(out)};
}

Values linear_classifier(NodeCall& c) {
  const Labels labels = Labels::of(c, "classlabels_strings", "classlabels_ints");
  const auto given = static_cast<int64_t>(c.floats_attr("intercepts").size());
  const int64_t classes =
      given > 0 ? given : std::max<int64_t>(static_cast<int64_t>(labels.size()), 1);
  const PostTransform transform = post_transform(c);
  const Tensor weight = coefficients(c, classes), bias = intercepts(c, classes);
  const Array rows = feature_rows(c, 0);
  const Array raw = linear_scores(Tensor(rows), weight, bias).array().contiguous();
  const int64_t count = rows.shape[0];
  const bool second = classes == 1 && labels.size() == 2;
  c.check(classes == 1 || static_cast<int64_t>(labels.size()) == classes, "there are ",
          labels.size(), " labels for ", classes, " classes");
  const int64_t columns = second ? 2 : classes;
  Array out = Array::empty(DType::kF32, {count, columns});
  std::vector<size_t> chosen;
  for (int64_t r = 0; r < count; ++r) {
    const float* row = raw.data<float>() + r * classes;
    std::vector<float> scores(row, row + classes);
    chosen.push_back(
        classes == 1
            ? scores[0] > 0
            : static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin()));
    apply_post_transform(scores, transform, second ? SecondClass::kComplement : SecondClass::kNone);
    scores.resize(static_cast<size_t>(columns));
    std::copy(scores.begin(), scores.end(), out.data<float>() + r * columns);
  }
  return {(classes == 1 ? labels.binary() : labels).at(chosen), Tensor(out)};
}

}  // namespace

OperatorTable ml_linear_operators() {
  static constexpr Operator operators[] = {
      {"LinearClassifier", 1, linear_classifier},
      {"LinearRegressor", 1, linear_regressor},
  };
  return operators;
}

}  // namespace paddle::onnx
