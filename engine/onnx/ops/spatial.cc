// Spatial sampling: GridSample, AffineGrid, Col2Im and DeformConv.

#include <algorithm>

#include "base/limits.h"
#include "onnx/ops/helpers.h"
#include "onnx/ops/window.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"
#include "ops/generated/vision.h"

namespace paddle::onnx {
namespace {

/// Grid coordinates are in [-1, 1], last axis first.
Values grid_sample(NodeCall& c) {
  std::string mode = c.string_attr("mode", "linear");
  if (mode == "linear") mode = "bilinear";
  if (mode == "cubic") mode = "bicubic";
  c.check(mode == "nearest" || mode == "bilinear" || mode == "bicubic", "unknown mode '", mode,
          "'");
  return {ops::grid_sample(c.tensor(0), c.tensor(1), mode, c.string_attr("padding_mode", "zeros"),
                           c.bool_attr("align_corners", false))};
}

/// Pixel centers (or corners) in [-1, 1].
Tensor normalized_coordinates(int64_t size, bool corners, DType dtype) {
  std::vector<double> values;
  const auto n = static_cast<double>(size);
  for (int64_t i = 0; i < size; ++i) {
    const auto at = static_cast<double>(i);
    values.push_back(corners ? (size == 1 ? -1 : 2 * at / (n - 1) - 1) : (2 * at + 1) / n - 1);
  }
  return ops::cast(Tensor(Array::from(values, {size})), dtype);
}

Values affine_grid(NodeCall& c) {
  const Tensor& theta = c.tensor(0);
  const auto sizes = c.constant_ints(1);
  c.check(sizes.size() == 4 || sizes.size() == 5, "size must have 4 or 5 elements");
  const auto rank = static_cast<int64_t>(sizes.size()) - 2;
  Shape grid;
  for (size_t i = 2; i < sizes.size(); ++i) {
    c.check(sizes[i] > 0 && sizes[i] < int64_t{1} << 24, "the size ", sizes[i], " is impossible");
    grid.push_back(sizes[i]);
  }
  Tensors columns;  // x, y, z, 1
  for (int64_t i = rank - 1; i >= 0; --i) {
    Shape shape(static_cast<size_t>(rank), Dim(1));
    shape[static_cast<size_t>(i)] = grid[static_cast<size_t>(i)];
    const Tensor line = normalized_coordinates(sizes[static_cast<size_t>(i) + 2],
                                               c.bool_attr("align_corners", false), theta.dtype());
    columns.push_back(ops::reshape(ops::expand(ops::reshape(line, shape), grid), Shape{-1}));
  }
  columns.push_back(ops::full(columns[0].shape(), 1.0, theta.dtype()));
  const Tensor out = ops::matmul(ops::stack(columns, 1), theta, false, true);
  Shape shape = {theta.dim(0)};
  shape.insert(shape.end(), grid.begin(), grid.end());
  shape.push_back(rank);
  return {ops::reshape(out, shape)};
}

/// Adds patches to the image at their positions.
Values col2im(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const auto image = c.constant_ints(1), block = c.constant_ints(2);
  const size_t rank = image.size();
  c.check(block.size() == rank && x.ndim() == 3,
          "image_shape and block_shape do not match the input");
  Shape shape = {x.dim(0), Dim(1)};
  for (const int64_t size : image) {
    c.check(size > 0 && size < int64_t{1} << 24, "the size ", size, " is impossible");
    shape.push_back(size);
  }
  const Window w(c, shape, block);
  std::vector<int64_t> counts;
  int64_t padded = 1, taps = 1, positions = 1;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < rank; ++i) {
    sizes.push_back(image[i] + w.before[i] + w.after[i]);
    const int64_t reach = (block[i] - 1) * w.dilation[i] + 1;
    c.check(sizes[i] >= reach, "the block is larger than the image");
    counts.push_back((sizes[i] - reach) / w.stride[i] + 1);
    padded *= sizes[i];
    taps *= block[i];
    positions *= counts[i];
    const int64_t most = limits().memory / static_cast<int64_t>(sizeof(int64_t));
    c.check(std::max({padded, taps, positions}) <= most && taps <= most / positions,
            "there are more patches than the memory holds");
  }
  c.check(x.dim(1).equals(0) != true && x.dim(2).equals(positions) != false, "the blocks fit ",
          positions, " times into the image, the input is ", x.type());
  std::vector<int64_t> indices;
  for (int64_t k = 0; k < taps; ++k)
    for (int64_t p = 0; p < positions; ++p) {
      int64_t at = 0, scale = 1, kr = k, pr = p;
      for (size_t i = rank; i-- > 0;) {
        at += (pr % counts[i] * w.stride[i] + kr % block[i] * w.dilation[i]) * scale;
        scale *= sizes[i];
        pr /= counts[i];
        kr /= block[i];
      }
      indices.push_back(at);
    }
  const Dim channels = floor_divide(x.dim(1), taps), rows = x.dim(0) * channels;
  const Tensor data = ops::reshape(x, {rows, Dim(taps * positions)});
  const Tensor index = ops::expand(ops::unsqueeze(int_vector(indices), {0}), data.shape());
  Tensor out =
      ops::scatter_along(ops::full({rows, Dim(padded)}, 0.0, x.dtype()), index, data, 1, "add");
  Shape whole = {x.dim(0), channels};
  for (const int64_t s : sizes) whole.push_back(s);
  out = ops::reshape(out, whole);
  for (size_t i = 0; i < rank; ++i)
    out = slice_axis(out, static_cast<int64_t>(i) + 2, w.before[i], w.before[i] + image[i]);
  return {out};
}

/// Deformable convolution (Dai et al., "Deformable Convolutional Networks", 2017): an offset per
/// kernel tap and output position.
Values deform_conv(NodeCall& c) {
  const Dims filter = constant_shape(c.tensor(1));
  c.check(filter.size() == 4, "only deformable convolutions of images are supported");
  const Window w(c, c.tensor(0).shape(), {filter[2], filter[3]});
  return {ops::deform_conv2d(c.tensor(0), c.tensor(2), c.tensor(1), c.optional_tensor(3),
                             AttrValue(w.stride), w.borders(), AttrValue(w.dilation),
                             c.int_attr("offset_group", 1), c.int_attr("group", 1),
                             c.optional_tensor(4))};
}

}  // namespace

OperatorTable spatial_operators() {
  static constexpr Operator operators[] = {
      {"GridSample", 1, grid_sample},
      {"AffineGrid", 1, affine_grid},
      {"Col2Im", 1, col2im},
      {"DeformConv", 1, deform_conv},
  };
  return operators;
}

}  // namespace paddle::onnx
