// Feature preprocessing operators of ai.onnx.ml.

#include <algorithm>
#include <cmath>
#include <map>
#include <type_traits>

#include "onnx/ml/classifier.h"
#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

Values array_feature_extractor(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const Tensor out =
      ops::index_select(x, ops::reshape(ops::cast(c.tensor(1), DType::kI64), Shape{-1}), -1);
  return {x.ndim() == 1 ? ops::unsqueeze(out, {0}) : out};
}

Values binarizer(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  return {
      ops::cast(ops::greater_than(x, scalar(c.float_attr("threshold", 0), x.dtype())), x.dtype())};
}

Values scaler(NodeCall& c) {
  const Tensor x = ops::cast(c.tensor(0), DType::kF32);
  const auto row = [&](const char* name, double default_value) {
    const auto values = c.floats_attr(name, {default_value});
    return ops::cast(Tensor(Array::from(values, {static_cast<int64_t>(values.size())})),
                     DType::kF32);
  };
  return {(x - row("offset", 0)) * row("scale", 1)};
}

Values normalizer(NodeCall& c) {
  const Tensor x = ops::cast(c.tensor(0), DType::kF32);
  const std::string norm = c.string_attr("norm", "MAX");
  const std::vector<int64_t> axis = {-1};
  c.check(norm == "MAX" || norm == "L1" || norm == "L2", "unknown norm '", norm, "'");
  if (norm == "MAX") return {divide_no_nan(x, ops::max(ops::abs(x), axis, true))};
  // Squares and sums of extreme float32 values do not overflow in float64.
  const Tensor wide = ops::cast(x, DType::kF64);
  const Tensor size = norm == "L1" ? ops::sum(ops::abs(wide), axis, DType::kF64, true)
                                   : ops::sqrt(ops::sum(wide * wide, axis, DType::kF64, true));
  return {ops::cast(divide_no_nan(wide, size), DType::kF32)};
}

/// The replacement of missing values in column i.
template <class T>
Values impute(NodeCall& c, const Array& x, T missing, const std::vector<T>& values) {
  c.check(!values.empty(), "the imputed values are missing");
  const int64_t columns = x.shape.back();
  c.check(values.size() == 1 || static_cast<int64_t>(values.size()) == columns, "there are ",
          values.size(), " imputed values for ", columns, " columns");
  Array out = Array::empty(x.dtype, x.shape);
  visit_dtype(x.dtype, [&](auto tag) {
    using Element = typename decltype(tag)::type;
    for (int64_t i = 0; i < x.size(); ++i) {
      const Element element = x.data<Element>()[i];
      bool replaced = false;
      if constexpr (std::is_integral_v<T> == std::is_integral_v<Element>)
        replaced = static_cast<T>(element) == missing;
      if constexpr (std::is_floating_point_v<T> && std::is_floating_point_v<Element>)
        replaced = replaced || (std::isnan(element) && std::isnan(missing));
      const T value = values[values.size() == 1 ? 0 : static_cast<size_t>(i % columns)];
      out.data<Element>()[i] = replaced ? static_cast<Element>(value) : element;
    }
  });
  return {Tensor(out)};
}

Values imputer(NodeCall& c) {
  const Array x = c.constant_array(0);
  c.check(x.ndim() >= 1, "the input must have an axis of features");
  if (x.dtype == DType::kI64 || x.dtype == DType::kI32)
    return impute(c, x, c.int_attr("replaced_value_int64", 0), c.ints_attr("imputed_value_int64s"));
  c.check(x.dtype == DType::kF32 || x.dtype == DType::kF64, "the input is ", paddle::text(x.dtype));
  return impute(c, x, c.float_attr("replaced_value_float", 0),
                c.floats_attr("imputed_value_floats"));
}

/// Each input is cropped or zero-padded to the width in the attribute.
Values feature_vectorizer(NodeCall& c) {
  const auto widths = c.ints_attr("inputdimensions");
  c.check(c.input_count() > 0 && widths.size() == c.input_count(), "there are ", widths.size(),
          " widths for ", c.input_count(), " inputs");
  Tensors parts;
  for (size_t i = 0; i < widths.size(); ++i) {
    const int64_t width = widths[i];
    c.check(width >= 0 && width < int64_t{1} << 40, "inputdimensions holds ", width);
    const Tensor& x = c.tensor(i);
    c.check(x.ndim() >= 1, "input ", i, " must be rows of features");
    Tensor rows = ops::cast(x.ndim() == 1 ? ops::unsqueeze(x, {0}) : x, DType::kF32);
    if (rows.ndim() > 2) rows = ops::flatten(rows, 1, -1);
    const int64_t found = constant_dim(rows, 1);
    if (found > width)
      rows = slice_axis(rows, 1, 0, width);
    else if (found < width)
      rows =
          ops::concat({rows, ops::zeros(Shape{rows.dim(0), Dim(width - found)}, DType::kF32)}, 1);
    parts.push_back(rows);
  }
  return {ops::concat(parts, 1)};
}

/// One-hot encoding along a new last axis.
Values one_hot_encoder(NodeCall& c) {
  const auto words = c.strings_attr("cats_strings");
  const auto numbers = c.ints_attr("cats_int64s");
  const size_t count = std::max(words.size(), numbers.size());
  c.check(count > 0 && (words.empty() || numbers.empty()),
          "expected one of cats_int64s and cats_strings");
  Dims shape = concrete(c.value(0).shape());
  const int64_t items = element_count(std::span<const int64_t>(shape));
  shape.push_back(static_cast<int64_t>(count));
  Array out = ops::zeros(to_shape(shape), DType::kF32).array().contiguous();
  const auto mark = [&](int64_t i, const auto& index_of, const auto& key) {
    const auto found = index_of.find(key);
    c.check(found != index_of.end() || c.bool_attr("zeros", true),
            "a value is in none of the categories, which 'zeros' forbids");
    if (found != index_of.end())
      out.data<float>()[i * static_cast<int64_t>(count) + found->second] = 1;
  };
  if (c.value(0).kind() == Value::Kind::kStrings) {
    std::map<std::string, int64_t> index_of;
    for (size_t i = 0; i < words.size(); ++i) index_of[words[i]] = static_cast<int64_t>(i);
    for (int64_t i = 0; i < items; ++i)
      mark(i, index_of, c.value(0).strings().items[static_cast<size_t>(i)]);
  } else {
    std::map<int64_t, int64_t> index_of;
    for (size_t i = 0; i < numbers.size(); ++i) index_of[numbers[i]] = static_cast<int64_t>(i);
    const Array x = c.constant_array(0);
    for (int64_t i = 0; i < items; ++i) {
      const double number = x.number(i);  // non-integers are in no category
      mark(i, index_of, std::abs(number) < 0x1p63 ? x.integer(i) : INT64_MIN);
    }
  }
  return {Tensor(out)};
}

}  // namespace

OperatorTable ml_features_operators() {
  static constexpr Operator operators[] = {
      {"ArrayFeatureExtractor", 1, array_feature_extractor},
      {"Binarizer", 1, binarizer},
      {"FeatureVectorizer", 1, feature_vectorizer},
      {"Imputer", 1, imputer},
      {"Normalizer", 1, normalizer},
      {"OneHotEncoder", 1, one_hot_encoder},
      {"Scaler", 1, scaler},
  };
  return operators;
}

}  // namespace paddle::onnx
