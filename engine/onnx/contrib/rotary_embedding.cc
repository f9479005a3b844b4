// RotaryEmbedding and MRotaryEmbedding of com.microsoft.

#include <algorithm>
#include <array>

#include "onnx/contrib/attention_common.h"
#include "onnx/ops/helpers.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// Rows of a cosine or sine table at `positions` [batch, steps], for all heads.
Tensor lookup_angles(const Tensor& table, const Tensor& positions) {
  const Tensor rows = ops::index_select(table, ops::reshape(positions, Shape{-1}), 0);
  return ops::reshape(rows, {positions.dim(0), Dim(1), positions.dim(1), table.dim(1)});
}

/// Rotates the first `width` features of x [batch, heads, steps, size]; 0 means all that the angles
/// cover.
Tensor rotate(const NodeCall& c, const Tensor& x, const Tensor& cosines, const Tensor& sines,
              bool interleaved, int64_t width) {
  const int64_t size = constant_dim(x, 3);
  if (width == 0) width = 2 * constant_dim(cosines, 3);
  c.check(width <= size && width % 2 == 0, "the rotary dimension ", width, " does not match ",
          size);
  const Tensor out = ops::rotary_embedding(slice_axis(x, 3, 0, width), cosines, sines, interleaved);
  return width == size ? out : ops::concat({out, slice_axis(x, 3, width, size)}, 3);
}

}  // namespace

Tensor rotate_at(const NodeCall& c, const Tensor& x, const Tensor& positions, const Tensor& cosines,
                 const Tensor& sines, bool interleaved, int64_t width) {
  return rotate(c, x, lookup_angles(cosines, positions), lookup_angles(sines, positions),
                interleaved, width);
}

namespace {

/// Splits heads unless x is [batch, heads, steps, size] already.
Tensor with_split_heads(const NodeCall& c, const Tensor& x, const Tensor& cosines) {
  if (x.ndim() != 3) return x;
  int64_t heads = c.int_attr("num_heads", 0);
  if (heads == 0) heads = constant_dim(x, 2) / (2 * constant_dim(cosines, 1));
  c.check(heads > 0, "num_heads is ", heads);
  return split_heads(x, heads);
}

/// Three rows of positions (time, height, width) share the angles: in sections, or interleaved up
/// to the count of each.
Values multimodal_rotary_embedding(NodeCall& c) {
  const Tensor &in = c.tensor(0), &cosines = c.tensor(2), &sines = c.tensor(3);
  const Tensor positions = ops::cast(c.tensor(1), DType::kI64);
  const auto counts = c.ints_attr("mrope_section");
  const int64_t columns = constant_dim(cosines, 1), layout = c.int_attr("mrope_layout", 0);
  c.check(counts.size() == 3 &&
              std::ranges::all_of(counts, [&](int64_t n) { return n >= 0 && n <= columns; }) &&
              counts[0] + counts[1] + counts[2] == columns,
          "mrope_section does not match ", columns, " angles");
  c.check(layout == 0 || layout == 1, "unknown mrope_layout ", layout);
  c.check(positions.ndim() == 3 && positions.dim(0).equals(3).value_or(true),
          "position_ids must be [3, batch, steps]");
  std::array<std::vector<int64_t>, 3> owned = {};
  for (int64_t i = 0; i < columns; ++i) {
    size_t row = i < counts[0] ? 0 : i < counts[0] + counts[1] ? 1 : 2;
    if (layout == 1)
      row =
          i % 3 != 0 && i < 3 * counts[static_cast<size_t>(i % 3)] ? static_cast<size_t>(i % 3) : 0;
    for (size_t k = 0; k < 3; ++k) owned[k].push_back(k == row ? 1 : 0);
  }
  const double scale = c.float_attr("scale", 1);
  const auto angles = [&](const Tensor& table) {
    Tensor out;
    for (int64_t k = 2; k >= 0; --k) {
      const Tensor each = lookup_angles(
          table, ops::squeeze(slice_axis(positions, 0, k, k + 1), std::vector<int64_t>{0}));
      const Tensor own = int_vector(owned[static_cast<size_t>(k)], DType::kBool);
      out = out ? ops::where(own, each, out) : each;
    }
    return scale == 1 ? out : out * scale;
  };
  const Tensor y = rotate(c, with_split_heads(c, in, cosines), angles(cosines), angles(sines),
                          c.bool_attr("interleaved", false), c.int_attr("rotary_embedding_dim", 0));
  return {in.ndim() == 3 ? join_heads(y) : y};
}

/// Positions are one start for all samples, or one number per step.
Values rotary_embedding(NodeCall& c) {
  const Tensor& in = c.tensor(0);
  const Tensor &cosines = c.tensor(2), &sines = c.tensor(3);
  const Tensor x = with_split_heads(c, in, cosines);
  Tensor positions = ops::cast(c.tensor(1), DType::kI64);
  if (positions.ndim() < 2 || !positions.dim(0).equals(x.dim(0)).value_or(true))
    positions = ops::expand(ops::reshape(positions, {1, 1}) + ops::unsqueeze(iota(x.dim(2)), {0}),
                            {x.dim(0), x.dim(2)});
  const Tensor y = rotate_at(c, x, positions, cosines, sines, c.bool_attr("interleaved", false),
                             c.int_attr("rotary_embedding_dim", 0));
  return {in.ndim() == 3 ? join_heads(y) : y};
}

}  // namespace

OperatorTable contrib_rotary_embedding_operators() {
  static constexpr Operator operators[] = {
      {"MRotaryEmbedding", 1, multimodal_rotary_embedding},
      {"RotaryEmbedding", 1, rotary_embedding},
  };
  return operators;
}

}  // namespace paddle::onnx
