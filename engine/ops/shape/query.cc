// Rules of query.yaml.

#include "ops/core/compose.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"
#include "ops/generated/shape_rules.h"

namespace paddle::rules {

Tensors decompose_shape(CallContext& c) {
  const Shape& shape = c.operand(0).shape();
  if (shape.empty()) return {full_of({Dim(0)}, 0, DType::kI64)};
  Tensors sizes;
  for (const Dim& d : shape) sizes.push_back(dim_value(d, DType::kI64));
  return {ops::stack(sizes, 0)};
}

void infer_run_time_sizes(InferContext& c) {
  const Dim count = c.rank(0) == 1 ? c.shape(0)[0] : Dim(-1);
  c.check(count.is_constant() && count.value() >= 0 && count.value() < 64,
          "expected a list of at most 63 sizes, found ", c.type(0));
  Shape shape;
  for (int64_t i = 0; i < count.value(); ++i) shape.push_back(c.run_time_dim());
  shape.emplace_back(0);
  c.result(DType::kBool, std::move(shape));
}

Tensors decompose_numel(CallContext& c) {
  return {dim_value(element_count(std::span<const Dim>(c.operand(0).shape())), DType::kI64)};
}

Tensors decompose_rank(CallContext& c) { return {dim_value(c.operand(0).ndim(), DType::kI32)}; }

Tensors decompose_is_empty(CallContext& c) {
  const Dim count = element_count(std::span<const Dim>(c.operand(0).shape()));
  return {ops::equal(dim_value(count, DType::kI64), integer(0))};
}

}  // namespace paddle::rules
