// Experimental operators of the first ONNX opsets, found in files converted from Core ML and
// Caffe2. ONNX Runtime runs them up to opset 9.

#include "onnx/ops/helpers.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"

namespace paddle::onnx {
namespace {

Values affine(NodeCall& c) {
  return {c.tensor(0) * c.float_attr("alpha", 1) + c.float_attr("beta", 0)};
}
Values scale(NodeCall& c) { return {c.tensor(0) * c.float_attr("scale", 1)}; }
Values scaled_tanh(NodeCall& c) {
  return {ops::tanh(c.tensor(0) * c.float_attr("beta", 1)) * c.float_attr("alpha", 1)};
}
Values parametric_softplus(NodeCall& c) {
  return {ops::softplus(c.tensor(0) * c.float_attr("beta", 1), 1.0, 1e30) *
          c.float_attr("alpha", 1)};
}

/// Adds a bias per channel.
Values image_scaler(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const auto bias = c.floats_attr("bias");
  c.check(x.ndim() == 4 && x.dim(1).equals(static_cast<int64_t>(bias.size())).value_or(true),
          "there are ", bias.size(), " biases for ", x.type());
  const int64_t channels = static_cast<int64_t>(bias.size());
  const Tensor shift = ops::cast(Tensor(Array::from(bias, {1, channels, 1, 1})), x.dtype());
  return {x * c.float_attr("scale", 1) + shift};
}

/// Crops borders (left, top, right, bottom); with `scale`, to that height and width.
Values crop(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const auto border = c.ints_attr("border"), size = c.ints_attr("scale");
  c.check(x.ndim() == 4 && border.size() == 4 && (size.empty() || size.size() == 2),
          "expected images, four borders, and two sizes or none");
  const Dim top = border[1], left = border[0];
  const Dim bottom = size.empty() ? x.dim(2) - border[3] : top + size[0];
  const Dim right = size.empty() ? x.dim(3) - border[2] : left + size[1];
  for (const int64_t i : {int64_t{2}, int64_t{3}}) {
    const Dim &from = i == 2 ? top : left, &to = i == 2 ? bottom : right;
    c.check(!from.less(0).value_or(false) && !to.less(from).value_or(false) &&
                !x.dim(i).less(to).value_or(false),
            "the range ", from, " to ", to, " is outside of ", x.type());
  }
  return {slice_axis(slice_axis(x, 2, top, bottom), 3, left, right)};
}

}  // namespace

OperatorTable experimental_operators() {
  static constexpr Operator operators[] = {
      {"Affine", 1, affine},
      {"Scale", 1, scale},
      {"ScaledTanh", 1, scaled_tanh},
      {"ParametricSoftplus", 1, parametric_softplus},
      {"ImageScaler", 1, image_scaler},
      {"Crop", 1, crop},
  };
  return operators;
}

}  // namespace paddle::onnx
