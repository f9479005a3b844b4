// Convolutions and products of dequantized integers become ones on the integers.

#include <algorithm>

#include "compiler/passes/integers.h"
#include "ops/call.h"

namespace paddle::passes::integers {
namespace {

using ir::Operation;
using ir::Value;
namespace q = quantized;

/// Weights as int8 with zero point 0, and their scale: one or per out channel.
struct Weights {
  Array integers, scale;
};

/// From a dequantize of constants whose out channels are the axis `channel`.
std::optional<Weights> weights_of(const Value* v, int channel) {
  const Operation* const from = made_by(v, known().dequantize);
  if (!from) return std::nullopt;
  const Value &x = *from->operands[0], &scale = *from->operands[1], &zero = *from->operands[2];
  if (!x.constant || !scale.constant || !zero.constant || !is_byte(x.type.dtype) ||
      x.constant->size() == 0)
    return std::nullopt;
  const int rank = static_cast<int>(x.type.shape.size());
  const int scale_axis = varying_axis(&scale, rank), zero_axis = varying_axis(&zero, rank);
  const auto fits = [&](int axis) { return axis == -1 || axis == channel; };
  if (channel >= rank || !fits(scale_axis) || !fits(zero_axis)) return std::nullopt;
  const std::vector<Array> integers = q::centred_weights(*x.constant, *zero.constant, channel);
  if (integers.size() != 1) return std::nullopt;
  Weights w;
  w.integers = integers[0];
  const int64_t channels = w.integers.shape[static_cast<size_t>(channel)];
  const Array scales = scale.constant->contiguous();
  const int64_t count = scale_axis == -1 ? 1 : channels;
  w.scale = Array::empty(DType::kF32, count == 1 ? Dims{} : Dims{count});
  std::copy_n(scales.data<float>(), count, w.scale.data<float>());
  return w;
}

Array transposed(const Array& matrix) {
  Array turned = Array::empty(DType::kI8, {matrix.shape[1], matrix.shape[0]});
  const int8_t* const from = matrix.data<int8_t>();
  int8_t* const to = turned.data<int8_t>();
  for (int64_t r = 0; r < matrix.shape[0]; ++r)
    for (int64_t c = 0; c < matrix.shape[1]; ++c)
      to[c * matrix.shape[0] + r] = from[r * matrix.shape[1] + c];
  return turned;
}

class Former final : public Walk {
 public:
  Former(ir::Function& function, const TakesIntegers& takes) : Walk(function), takes_(takes) {}

 private:
  /// Makes a convolution or product of dequantized integers one on the integers.
  void visit(Place place) override {
    Operation& o = **place;
    const bool conv = o.op == &known().conv2d || o.op == &known().conv3d;
    const bool layer = o.op == &known().plain_linear;
    const bool product = o.op == &known().matmul;
    if (!(conv || layer || product) || o.results[0]->type.dtype != DType::kF32 ||
        has_run_time_size(o.results[0]->type))
      return;
    const Operation* const input = from_bytes(o.operands[0]);
    if (!input || has_run_time_size(input->operands[0]->type)) return;
    if (product && form_product_of_values(place, *input)) return;
    const bool turned = product && attribute(o, "transpose_y").as_bool();
    if (product && (attribute(o, "transpose_x").as_bool() || o.operands[0]->type.shape.size() < 2 ||
                    o.operands[1]->type.shape.size() != 2))
      return;
    auto weights = weights_of(o.operands[1], conv || turned ? 0 : 1);
    if (!weights) return;
    if (turned) weights->integers = transposed(weights->integers);
    if (!takes_(input->operands[0]->type.dtype, weights->integers)) return;
    Value* const given_bias = product ? nullptr : o.operands[2];
    if (given_bias && given_bias->type.shape.size() != 1) return;

    std::vector<Value*> operands(q::kOperandCount, nullptr);
    operands[q::kX] = input->operands[0];
    operands[q::kWeight] = function_.add_constant(weights->integers);
    operands[q::kXZero] = input->operands[2];
    operands[q::kScale] = scaled(place, input->operands[1], weights->scale);
    const Attrs before = o.attrs;
    const Op& plain = *o.op;
    o.op = conv ? &known().conv : &known().linear;
    o.attrs = default_attrs(*o.op);
    if (conv)
      for (const char* name : {"stride", "padding", "dilation", "groups", "data_format"})
        set_attribute(o, name, before[static_cast<size_t>(plain.attr_index(name))]);
    set_attribute(o, "dtype", DType::kF32);
    o.operands = std::move(operands);
    if (given_bias) o.operands[q::kBias] = bias_of(function_, o, given_bias);
  }

  /// Both operands are values, or the right one is no matrix of known int8 weights.
  bool form_product_of_values(Place place, const Operation& x) {
    Operation& o = **place;
    const Operation* const y = from_bytes(o.operands[1]);
    if (!y || !takes_values(takes_) || has_run_time_size(y->operands[0]->type) ||
        o.operands[0]->type.shape.size() < 2 || o.operands[1]->type.shape.size() < 2)
      return false;
    const bool turned = attribute(o, "transpose_y").as_bool();
    if (!attribute(o, "transpose_x").as_bool() && o.operands[1]->type.shape.size() == 2 &&
        weights_of(o.operands[1], turned ? 0 : 1))
      return false;
    std::vector<Value*> operands(q::kYZero + 1, nullptr);
    operands[q::kX] = x.operands[0];
    operands[q::kWeight] = y->operands[0];
    operands[q::kXZero] = x.operands[2];
    operands[q::kYZero] = y->operands[2];
    operands[q::kScale] = scaled(place, x.operands[1], y->operands[1]);
    const Attrs before = o.attrs;
    forget_reads(o);
    o.op = &known().product;
    o.attrs = default_attrs(*o.op);
    set_attribute(o, "transpose_x", before[0]);
    set_attribute(o, "transpose_y", before[1]);
    set_attribute(o, "dtype", DType::kF32);
    o.operands = std::move(operands);
    note_reads(o);
    return true;
  }

  /// The product of the scales of two values.
  Value* scaled(Place before, Value* x_scale, Value* y_scale) {
    if (y_scale->constant) {
      Array number = Array::scalar<float>(static_cast<float>(y_scale->constant->number()));
      return scaled(before, x_scale, number);
    }
    if (x_scale->constant) return scaled(before, y_scale, x_scale);
    Value* const result = function_.new_value(x_scale->type);
    insert(before, **before, known().multiply, {x_scale, y_scale}, {}, result);
    return result;
  }

  /// The product of the input's scale and the weights'.
  Value* scaled(Place before, Value* input_scale, const Array& weight_scale) {
    if (input_scale->constant) {
      Array both = Array::empty(DType::kF32, weight_scale.shape);
      const auto first = static_cast<float>(input_scale->constant->number());
      for (int64_t i = 0; i < both.size(); ++i)
        both.data<float>()[i] = first * weight_scale.data<float>()[i];
      return function_.add_constant(both);
    }
    Value* const constant = function_.add_constant(weight_scale);
    Value* const result = function_.new_value(constant->type);
    insert(before, **before, known().multiply, {constant, input_scale}, {}, result);
    return result;
  }

  const TakesIntegers& takes_;
};

}  // namespace

bool takes_values(const TakesIntegers& takes_integers) {
  return takes_integers && q::takes_values();
}

void form_products(ir::Function& function, const TakesIntegers& takes_integers) {
  Former(function, takes_integers).run();
}

}  // namespace paddle::passes::integers
