// Rules of complex.yaml. For a real loss L, the gradient g of z is such that dL = Re(conj(g) dz).

#include "ops/generated/complex.h"
#include "ops/core/compose.h"
#include "ops/generated/complex_rules.h"
#include "ops/generated/creation.h"
#include "ops/generated/math.h"
#include "tensor/complex.h"

namespace paddle::rules {
namespace {

Tensor truth(bool value) { return ops::full(Shape(), AttrValue(value), DType::kBool); }

Tensor zeros_of(const Tensor& x) { return full_of(x.shape(), 0, x.dtype()); }

}  // namespace

void infer_complex(InferContext& c) {
  c.result(complex_type(c.dtype(0)), c.broadcast(c.shape(0), c.shape(1)));
}

Tensors vjp_complex(VjpContext& c) {
  const Tensor& g = c.cotangent();
  return {sum_to(ops::real(g), c.operand(0).shape()), sum_to(ops::imag(g), c.operand(1).shape())};
}

void infer_complex_part(InferContext& c) { c.result(real_type(c.dtype(0)), c.shape(0)); }

Tensors vjp_real(VjpContext& c) {
  const Tensor& g = c.cotangent();
  return {is_complex(c.plain_operand(0).dtype()) ? ops::complex(g, zeros_of(g)) : g};
}

Tensors vjp_imag(VjpContext& c) {
  const Tensor& g = c.cotangent();
  if (!is_complex(c.plain_operand(0).dtype())) return {zeros_of(g)};
  return {ops::complex(zeros_of(g), g)};
}

// d arg z = Im(dz / z); 0 at 0.
Tensors vjp_complex_angle(VjpContext& c) {
  const Tensor& x = c.plain_operand(0);
  const Tensor zero = ops::equal(x, number(0.0));
  const Tensor safe = ops::where(zero, number(1.0), x);
  const Tensor turn = Tensor::number(std::complex<double>(0, 1)) / ops::conj(safe);
  return {c.cotangent() * ops::where(zero, number(0.0), turn)};
}

Tensors vjp_conj(VjpContext& c) { return {ops::conj(c.cotangent())}; }

void infer_as_real(InferContext& c) {
  Shape shape = c.shape(0);
  shape.push_back(2);
  c.result(real_type(c.dtype(0)), shape);
}

Tensors vjp_as_real(VjpContext& c) { return {ops::as_complex(c.cotangent())}; }

void infer_as_complex(InferContext& c) {
  Shape shape = c.shape(0);
  c.check(!shape.empty(), "x must have a last axis of size 2, not be ", c.type(0));
  c.require_equal(shape.back(), 2, str("the last axis of ", c.type(0), " must have size 2"));
  shape.pop_back();
  c.result(complex_type(c.dtype(0)), shape);
}

Tensors vjp_as_complex(VjpContext& c) { return {ops::as_real(c.cotangent())}; }

Tensors decompose_polar(CallContext& c) {
  const Tensor &size = c.operand(0), &angle = c.operand(1);
  return {ops::complex(size * ops::cos(angle), size * ops::sin(angle))};
}

Tensors decompose_is_complex(CallContext& c) { return {truth(is_complex(c.operand(0).dtype()))}; }

Tensors decompose_is_floating_point(CallContext& c) {
  return {truth(is_float(c.operand(0).dtype()))};
}

Tensors decompose_is_integer(CallContext& c) { return {truth(is_integer(c.operand(0).dtype()))}; }

}  // namespace paddle::rules
