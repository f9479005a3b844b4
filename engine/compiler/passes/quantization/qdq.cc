#include "compiler/passes/quantization/qdq.h"

#include <cmath>

namespace paddle::passes::qdq {

using ir::Operation;
using ir::Value;
namespace q = quantized;

const Ops& known_ops() {
  static const Ops kOps;
  return kOps;
}

bool is_8_bit(DType dtype) { return dtype == DType::kU8 || dtype == DType::kI8; }

bool is_int8_op(const Op& op) {
  const Ops& k = known_ops();
  return &op == &k.quantized_conv || &op == &k.quantized_conv_transpose ||
         &op == &k.quantized_linear || &op == &k.quantized_matmul;
}

bool is_scalar(const Value* v) { return v && v->type.shape.empty(); }
bool is_constant_scalar(const Value* v) { return is_scalar(v) && v->constant; }

bool is_positive(const Value* v) {
  return is_constant_scalar(v) && v->constant->number() > 0 && std::isfinite(v->constant->number());
}

bool same_scalar(const Value* a, const Value* b) {
  return a == b || (is_constant_scalar(a) && is_constant_scalar(b) &&
                    a->constant->number() == b->constant->number());
}

const AttrValue& attribute(const Operation& o, const char* name) {
  return o.attrs[static_cast<size_t>(o.op->attr_index(name))];
}

void set_attribute(Operation& o, const char* name, AttrValue value) {
  o.attrs[static_cast<size_t>(o.op->attr_index(name))] = std::move(value);
}

Operation* produced_by(const Value* v, const Op& op) {
  return v && v->producer && v->producer->op == &op ? v->producer : nullptr;
}

Operation* per_tensor_dequantize(const Value* v) {
  Operation* const o = produced_by(v, known_ops().dequantize);
  const bool per_tensor = o && is_8_bit(o->operands[0]->type.dtype) && is_scalar(o->operands[1]) &&
                          is_scalar(o->operands[2]);
  return per_tensor ? o : nullptr;
}

int varying_axis(const Value* v, int rank) {
  const Shape& shape = v->type.shape;
  int axis = -1;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!shape[i].equals(1).value_or(false)) {
      if (axis != -1) return -2;
      axis = static_cast<int>(i) + rank - static_cast<int>(shape.size());
    }
  return axis;
}

Array flattened(const Array& a) {
  Array all = a.contiguous();
  all.shape = {a.size()};
  all.strides = {1};
  return all;
}

Value* accumulator_bias(ir::Function& function, const Operation& o, Value* bias) {
  const Operation* const from = produced_by(bias, known_ops().dequantize);
  const Value* const scale = o.operands[q::kScale];
  if (!from || !from->operands[0]->constant || from->operands[0]->type.dtype != DType::kI32 ||
      !from->operands[1]->constant || !from->operands[2]->constant || !scale->constant)
    return bias;
  const int64_t channels = from->operands[0]->constant->size();
  const auto at = [&](const Value* v, int64_t c) {
    return v->constant->number(v->constant->size() == 1 ? 0 : c);
  };
  // Its scale has to be that of the accumulator, up to the rounding of the exporter.
  for (int64_t c = 0; c < channels; ++c) {
    const double own = at(from->operands[1], c), wanted = at(scale, c);
    if (at(from->operands[2], c) != 0 || !(std::abs(own - wanted) <= 1e-6 * wanted)) return bias;
  }
  return from->operands[0]->type.shape.size() == 1
             ? from->operands[0]
             : function.add_constant(flattened(*from->operands[0]->constant));
}

}  // namespace paddle::passes::qdq
