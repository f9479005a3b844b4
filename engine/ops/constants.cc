// Rules of schema/constants.yaml.

#include <cmath>

#include "ops/generated/attrs.h"
#include "ops/generated/rules.h"
#include "ops/operators.h"

namespace paddle::rules {
namespace {

Tensor filled(const Shape& shape, const AttrValue& value, std::optional<DType> dtype,
              DType otherwise) {
  return ops::full(shape, value, dtype.value_or(otherwise));
}

Tensor triangle_indices(int64_t rows, int64_t columns, int64_t offset, bool lower, DType dtype) {
  if (rows < 0 || columns < 0) fail(ErrorCode::kUsage, "a triangle of a matrix of negative size");
  if (rows > 0 && columns > (int64_t{1} << 28) / rows)
    fail(ErrorCode::kUsage, "a triangle of a matrix of more than 2^28 elements");
  std::vector<int64_t> row, column;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (lower ? j - i <= offset : j - i >= offset) {
        row.push_back(i);
        column.push_back(j);
      }
  const auto n = static_cast<int64_t>(row.size());
  row.insert(row.end(), column.begin(), column.end());
  return ops::cast(Tensor(Array::from(row, {2, n})), dtype);
}

}  // namespace

Tensors decompose_zeros(CallContext& c) {
  const auto a = c.attrs_as<ZerosAttrs>();
  return {filled(a.shape, AttrValue(0.0), a.dtype, DType::kF32)};
}
Tensors decompose_ones(CallContext& c) {
  const auto a = c.attrs_as<OnesAttrs>();
  return {filled(a.shape, AttrValue(1.0), a.dtype, DType::kF32)};
}
Tensors decompose_empty(CallContext& c) {
  const auto a = c.attrs_as<EmptyAttrs>();
  return {filled(a.shape, AttrValue(0.0), a.dtype, DType::kF32)};
}
Tensors decompose_zeros_like(CallContext& c) {
  return {filled(c.operand(0).shape(), AttrValue(0.0), c.attrs_as<ZerosLikeAttrs>().dtype,
                 c.operand(0).dtype())};
}
Tensors decompose_ones_like(CallContext& c) {
  return {filled(c.operand(0).shape(), AttrValue(1.0), c.attrs_as<OnesLikeAttrs>().dtype,
                 c.operand(0).dtype())};
}
Tensors decompose_empty_like(CallContext& c) {
  return {filled(c.operand(0).shape(), AttrValue(0.0), c.attrs_as<EmptyLikeAttrs>().dtype,
                 c.operand(0).dtype())};
}
Tensors decompose_full_like(CallContext& c) {
  const auto a = c.attrs_as<FullLikeAttrs>();
  return {filled(c.operand(0).shape(), a.fill_value, a.dtype, c.operand(0).dtype())};
}

Tensors decompose_eye(CallContext& c) {
  const auto a = c.attrs_as<EyeAttrs>();
  const Dim columns = a.num_columns.value_or(a.num_rows);
  if (a.num_rows.less(0).value_or(false) || columns.less(0).value_or(false))
    fail(ErrorCode::kUsage, "eye: ", a.num_rows, " rows and ", columns, " columns are no size");
  const Tensor row = ops::arange(AttrValue(0), AttrValue(a.num_rows), AttrValue(1), DType::kI64);
  const Tensor column = ops::arange(AttrValue(0), AttrValue(columns), AttrValue(1), DType::kI64);
  return {ops::cast(ops::equal(ops::unsqueeze(row, {1}), ops::unsqueeze(column, {0})),
                    a.dtype.value_or(DType::kF32))};
}

void infer_linspace(InferContext& c) {
  const auto a = c.attrs_as<LinspaceAttrs>();
  c.check(a.num > 0, "num must be positive, not ", a.num);
  c.result(a.dtype.value_or(DType::kF32), {Dim(a.num)});
}

Tensors decompose_logspace(CallContext& c) {
  const auto a = c.attrs_as<LogspaceAttrs>();
  const DType dtype = a.dtype.value_or(DType::kF32);
  const Tensor exponents = ops::linspace(a.start, a.stop, a.num, DType::kF64);
  return {ops::cast(ops::pow(full_of(Shape(), a.base.as_double(), DType::kF64), exponents), dtype)};
}

Tensors decompose_tril_indices(CallContext& c) {
  const auto a = c.attrs_as<TrilIndicesAttrs>();
  return {triangle_indices(a.row, a.col.value_or(a.row), a.offset, true, a.dtype)};
}
Tensors decompose_triu_indices(CallContext& c) {
  const auto a = c.attrs_as<TriuIndicesAttrs>();
  return {triangle_indices(a.row, a.col.value_or(a.row), a.offset, false, a.dtype)};
}

Tensors decompose_shape(CallContext& c) {
  const Shape& shape = c.operand(0).shape();
  if (shape.empty()) return {full_of({Dim(0)}, 0, DType::kI64)};
  Tensors sizes;
  for (const Dim& d : shape) sizes.push_back(dim_value(d, DType::kI64));
  return {ops::stack(sizes, 0)};
}
Tensors decompose_numel(CallContext& c) {
  return {dim_value(element_count(std::span<const Dim>(c.operand(0).shape())), DType::kI64)};
}
Tensors decompose_rank(CallContext& c) { return {dim_value(c.operand(0).ndim(), DType::kI32)}; }

}  // namespace paddle::rules
