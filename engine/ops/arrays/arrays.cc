// Rules of arrays.yaml.

#include "ops/generated/arrays.h"
#include "ops/core/compose.h"
#include "ops/generated/arrays_rules.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

/// The result of an operation is a value of its own.
Tensor copy(const Tensor& x) { return ops::assign(x); }

}  // namespace

Tensors decompose_create_array(CallContext& c) {
  const auto a = c.attrs_as<CreateArrayAttrs>();
  Tensors out;
  for (const Tensor& x : c.list(0)) {
    if (is_float(a.dtype) != is_float(x.dtype()))
      reject("create_array", "an array of ", text(a.dtype), " does not hold ", x.type());
    out.push_back(copy(x));
  }
  return out;
}

Tensors decompose_array_write(CallContext& c) {
  const int64_t i = c.attrs_as<ArrayWriteAttrs>().i;
  const Tensors list = c.list(1);
  const auto count = static_cast<int64_t>(list.size());
  if (i < 0 || i > count)
    reject("array_write", "i must be from 0 to the length ", count, ", not ", i);
  Tensors out;
  for (const Tensor& x : list) out.push_back(copy(x));
  if (i == count) out.emplace_back();
  out[static_cast<size_t>(i)] = copy(c.operand(0));
  return out;
}

Tensors decompose_array_read(CallContext& c) {
  const int64_t i = c.attrs_as<ArrayReadAttrs>().i;
  const Tensors list = c.list(0);
  const auto count = static_cast<int64_t>(list.size());
  if (i < 0 || i >= count)
    reject("array_read", "i must be below the length ", count, " and not negative, not ", i);
  return {copy(list[static_cast<size_t>(i)])};
}

Tensors decompose_array_length(CallContext& c) {
  return {full_of({}, static_cast<double>(c.list(0).size()), DType::kI64)};
}

Tensors decompose_tensor_array_to_tensor(CallContext& c) {
  const auto a = c.attrs_as<TensorArrayToTensorAttrs>();
  const Tensors list = c.list(0);
  if (list.empty()) reject("tensor_array_to_tensor", "input must not be empty");
  Tensors sizes;
  for (const Tensor& x : list) {
    const Dim size =
        a.use_stack ? Dim(1) : x.dim(axis_of("tensor_array_to_tensor", a.axis, x.ndim()));
    sizes.push_back(dim_value(size, DType::kI32));
  }
  return {a.use_stack ? ops::stack(list, a.axis) : ops::concat(list, a.axis), ops::stack(sizes, 0)};
}

}  // namespace paddle::rules
