#include "ops/core/row_sparse.h"

#include <algorithm>

#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/optimizer.h"
#include "ops/generated/shape.h"

namespace paddle {

Tensor make_row_sparse(const Tensor& indices, const Tensor& rows, const Dim& count) {
  auto content = std::make_shared<RowSparse>();
  content->indices = indices;
  content->rows = rows;
  return Tensor({rows.dtype(), {count, rows.dim(1)}}, std::move(content));
}

const RowSparse* row_sparse(const Tensor& tensor) {
  return tensor.defined() ? dynamic_cast<const RowSparse*>(tensor.content().get()) : nullptr;
}

Tensor densify(const Tensor& tensor) {
  const RowSparse* sparse = row_sparse(tensor);
  return sparse ? ops::embedding_grad(sparse->indices, sparse->rows, tensor.dim(0)) : tensor;
}

namespace {

bool is_scalar(const Tensor& t) { return t.defined() && t.ndim() == 0; }

Tensor with_rows(const Tensor& like, const RowSparse& sparse, const Tensor& rows) {
  return make_row_sparse(sparse.indices, rows, like.dim(0));
}

/// Sums duplicate rows into the first one; the others become zero.
RowSparse merged(const RowSparse& sparse) {
  RowSparse out;
  out.indices = sparse.indices;
  out.rows = ops::merge_rows(sparse.indices, sparse.rows);
  return out;
}

Tensors binary(std::string_view name, const Op& op, const Tensors& operands, const Attrs& attrs) {
  const RowSparse *x = row_sparse(operands[0]), *y = row_sparse(operands[1]);
  if (name == "add" && x && y)
    return {make_row_sparse(ops::concat({x->indices, y->indices}, 0),
                            ops::concat({x->rows, y->rows}, 0), operands[0].dim(0))};
  if (name == "multiply" && y && is_scalar(operands[0]))
    return {with_rows(operands[1], *y, call_single(op, {operands[0], y->rows}, attrs))};
  if ((name == "multiply" || name == "divide") && x && is_scalar(operands[1]))
    return {with_rows(operands[0], *x, call_single(op, {x->rows, operands[1]}, attrs))};
  return {};
}

}  // namespace

Tensors row_sparse_call(const Op& op, const Tensors& operands, const Attrs& attrs) {
  const std::string_view name = op.name();
  if (operands.size() == 2 && op.has(kElementwise)) return binary(name, op, operands, attrs);
  const RowSparse* x = row_sparse(operands[0]);
  if (operands.size() == 1 && (name == "neg" || name == "cast" || name == "assign"))
    return {with_rows(operands[0], *x, call_single(op, {x->rows}, attrs))};
  // Not linear, but zero stays zero: rows are merged first.
  if (name == "clip" && attrs[0].is_float() && attrs[1].is_float() && attrs[0].as_double() <= 0 &&
      attrs[1].as_double() >= 0)
    return {with_rows(operands[0], *x, call_single(op, {merged(*x).rows}, attrs))};
  if (name == "square")
    return {with_rows(operands[0], *x, call_single(op, {merged(*x).rows}, attrs))};
  if (name == "sum" && attrs[0].is_none() && !attrs[2].as_bool())
    return {call_single(op, {x->rows}, attrs)};
  if (name == "sum_of_squares") return call(op, {x->rows, x->indices}, attrs);
  // Updates of the touched rows only.
  if (!op.has(kOptimizerUpdate)) return {};
  const Op* rows_op = find_op(std::string(name) + "_rows");
  const RowSparse* gradient = operands.size() > 1 ? row_sparse(operands[1]) : nullptr;
  if (!gradient) return {};
  Tensors with = operands;
  if (!rows_op) {  // of the whole table; rows of 16 bits are summed in float32, as by the others
    const bool low = item_size(operands[1].dtype()) < 4;
    with[1] = densify(low ? ops::cast(operands[1], DType::kF32) : operands[1]);
    return call(op, with, attrs);
  }
  with[1] = gradient->rows;
  with.push_back(gradient->indices);
  return call(*rows_op, with, attrs);
}

}  // namespace paddle
