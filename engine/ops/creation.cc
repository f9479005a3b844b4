// Rules of schema/creation.yaml.

#include <cmath>

#include "ops/generated/attrs.h"
#include "ops/generated/rules.h"
#include "ops/operators.h"

namespace paddle::rules {
namespace {

void check_shape(InferContext& c, const Shape& shape) {
  for (const Dim& d : shape)
    c.check(!d.is_constant() || d.value() >= 0, "negative size in shape ", text(shape));
}

}  // namespace

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

void infer_random_float(InferContext& c) {
  const auto get = [&](const char* name) -> const AttrValue& {
    return c.attrs()[static_cast<size_t>(c.op().attr_index(name))];
  };
  const Shape shape = get("shape").as_dims();
  check_shape(c, shape);
  const DType dtype = get("dtype").is_none() ? DType::kF32 : get("dtype").as_dtype();
  c.check(is_float(dtype), "dtype must be floating, not ", text(dtype));
  c.result(dtype, shape);
}

void infer_randint(InferContext& c) {
  const auto a = c.attrs_as<RandintAttrs>();
  check_shape(c, a.shape);
  const int64_t low = a.high ? a.low : 0, high = a.high ? *a.high : a.low;
  c.check(low < high, "the range [", low, ", ", high, ") is empty");
  const DType dtype = a.dtype.value_or(DType::kI64);
  c.check(is_integer(dtype) || is_float(dtype), "dtype must be a number's, not ", text(dtype));
  c.result(dtype, a.shape);
}

void infer_bernoulli(InferContext& c) {
  c.require_float(0);
  c.result(c.dtype(0), c.shape(0));
}

void infer_dropout_mask(InferContext& c) {
  const auto a = c.attrs_as<DropoutMaskAttrs>();
  c.check(a.p >= 0 && a.p <= 1, "p must lie in [0, 1], not ", a.p);
  c.result(c.dtype(0), a.shape);
}

}  // namespace paddle::rules
