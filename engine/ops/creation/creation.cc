// Rules of creation.yaml.

#include <algorithm>
#include <cmath>

#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/creation_rules.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

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
  if (columns == 0) rows = 0;
  offset = std::clamp(offset, -rows, columns);
  std::vector<int64_t> row, column;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t begin = lower ? 0 : std::max<int64_t>(i + offset, 0),
                  end = lower ? std::min(i + offset + 1, columns) : columns;
    for (int64_t j = begin; j < end; ++j) {
      row.push_back(i);
      column.push_back(j);
    }
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
    fail(ErrorCode::kUsage, "eye: ", a.num_rows, " rows and ", columns, " columns are not a size");
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

void check_shape(InferContext& c, const Shape& shape) {
  for (const Dim& d : shape)
    c.check(!d.is_constant() || d.value() >= 0, "negative size in shape ", text(shape));
  element_count(std::span<const Dim>(shape));  // rejects what 64 bits cannot count
}

void infer_full(InferContext& c) {
  const auto a = c.attrs_as<FullAttrs>();
  check_shape(c, a.shape);
  const bool complex = a.fill_value.is_complex();
  const DType dtype = a.dtype.value_or(a.fill_value.is_bool() ? DType::kBool
                                       : complex              ? DType::kC64
                                                              : DType::kF32);
  c.check(!complex || is_complex(dtype), "the complex ", a.fill_value, " does not fit ",
          text(dtype));
  c.result(dtype, a.shape);
}

void infer_dim_value(InferContext& c) { c.result(c.attrs_as<DimValueAttrs>().dtype, Shape()); }

void infer_arange(InferContext& c) {
  const auto a = c.attrs_as<ArangeAttrs>();
  const AttrValue start = a.end.is_none() ? AttrValue(0) : a.start;
  const AttrValue end = a.end.is_none() ? a.start : a.end;
  DType dtype = DType::kI64;
  if (start.is_float() || end.is_float() || a.step.is_float()) dtype = DType::kF32;
  Dim count;
  if (start.is_int() && end.is_int() && a.step.is_int()) {
    const int64_t step = a.step.as_int();
    c.check(step != 0, "step is 0");
    const Dim span = end.as_dim() - start.as_dim();
    count = maximum(0, step > 0 ? floor_divide(span + step - 1, step)
                                : floor_divide(Dim(0) - span - step - 1, -step));
  } else {
    const double step = a.step.as_double();
    c.check(step != 0 && std::isfinite(step), "step must be a finite number other than 0");
    const double n = std::ceil((end.as_double() - start.as_double()) / step);
    c.check(std::abs(n) < 0x1p40, "the range is too long");
    count = n > 0 ? static_cast<int64_t>(n) : 0;
  }
  c.result(a.dtype.value_or(dtype), {count});
}

Tensors decompose_vander(CallContext& c) {
  const auto a = c.attrs_as<VanderAttrs>();
  const Tensor& x = c.operand(0);
  check_vector("vander", x);
  if (a.n && *a.n < 0) reject("vander", "n must not be negative, not ", *a.n);
  const int64_t n = a.n ? *a.n : x.dim(0).value();
  if (n > 4096) reject("vander", "more than 4096 columns: ", n);
  if (n == 0) return {full_of({x.dim(0), Dim(0)}, 0, x.dtype())};
  Tensors columns = {ones_like(x)};
  for (int64_t i = 1; i < n; ++i) columns.push_back(columns.back() * x);
  if (!a.increasing) columns = Tensors(columns.rbegin(), columns.rend());
  return {ops::stack(columns, 1)};
}

}  // namespace paddle::rules
