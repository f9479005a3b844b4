// Sorting and unique elements.

#include <numeric>

#include "onnx/ops/helpers.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/sorting.h"

namespace paddle::onnx {
namespace {

Values top_k(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.axis(c.int_attr("axis", -1), x.ndim());
  const int64_t k = c.opset() < 10 ? c.int_attr("k", 1) : c.constant_int(1);
  if (k == 0) {
    const Tensor none = slice_axis(x, axis, 0, 0);
    return {none, ops::cast(none, DType::kI64)};
  }
  const Tensors out = ops::topk(x, k, axis, c.bool_attr("largest", true), true);
  return {out[0], out[1]};
}

/// Distinct elements or slices with first index, inverse and counts; in order of occurrence if
/// `sorted` is 0.
Values unique(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  std::optional<int64_t> axis;
  if (c.has_attribute("axis")) axis = c.axis(c.int_attr("axis", 0), x.ndim());
  Tensors out = ops::unique(x, true, true, true, axis);
  if (c.bool_attr("sorted", true)) return {out[0], out[1], out[2], out[3]};
  const Tensor order = ops::argsort(out[1], 0);
  const Tensor rank = ops::argsort(order, 0);
  return {ops::index_select(out[0], order, axis.value_or(0)), ops::index_select(out[1], order, 0),
          ops::index_select(rank, out[2], 0), ops::index_select(out[3], order, 0)};
}

}  // namespace

OperatorTable sort_operators() {
  static constexpr Operator operators[] = {{"TopK", 1, top_k}, {"Unique", 1, unique}};
  return operators;
}

}  // namespace paddle::onnx
