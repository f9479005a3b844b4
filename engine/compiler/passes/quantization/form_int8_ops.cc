// Second step of QDQ lowering: replaces convolutions and matrix products of dequantized operands by
// integer operations with an output scale.

#include <algorithm>

#include "compiler/passes/pattern_rewriter.h"
#include "compiler/passes/quantization/conv_transpose.h"
#include "compiler/passes/quantization/qdq.h"
#include "ops/core/call.h"

namespace paddle::passes::qdq {
namespace {

using ir::Operation;
using ir::Value;
namespace q = quantized;

/// Symmetric int8 weights and their scale, per tensor or per output channel.
struct Weights {
  Array values, scale;
};

/// The weights that a dequantize of constants produces; `channel` is the axis of output channels.
std::optional<Weights> weights_of(const Value* v, int channel) {
  const Operation* const from = produced_by(v, known_ops().dequantize);
  if (!from) return std::nullopt;
  const Value &x = *from->operands[0], &scale = *from->operands[1], &zero = *from->operands[2];
  if (!x.constant || !scale.constant || !zero.constant || !is_8_bit(x.type.dtype) ||
      x.constant->size() == 0)
    return std::nullopt;
  const int rank = static_cast<int>(x.type.shape.size());
  const int scale_axis = varying_axis(&scale, rank), zero_axis = varying_axis(&zero, rank);
  const auto fits = [&](int axis) { return axis == -1 || axis == channel; };
  if (channel >= rank || !fits(scale_axis) || !fits(zero_axis)) return std::nullopt;
  const std::vector<Array> values = q::centered_weights(*x.constant, *zero.constant, channel);
  if (values.size() != 1) return std::nullopt;
  Weights w;
  w.values = values[0];
  const int64_t channels = w.values.shape[static_cast<size_t>(channel)];
  const Array scales = scale.constant->contiguous();
  const int64_t count = scale_axis == -1 ? 1 : channels;
  w.scale = Array::empty(DType::kF32, count == 1 ? Dims{} : Dims{count});
  std::copy_n(scales.data<float>(), count, w.scale.data<float>());
  return w;
}

Array transposed(const Array& matrix) {
  Array out = Array::empty(DType::kI8, {matrix.shape[1], matrix.shape[0]});
  const int8_t* const from = matrix.data<int8_t>();
  int8_t* const to = out.data<int8_t>();
  for (int64_t r = 0; r < matrix.shape[0]; ++r)
    for (int64_t c = 0; c < matrix.shape[1]; ++c)
      to[c * matrix.shape[0] + r] = from[r * matrix.shape[1] + c];
  return out;
}

/// The scales of a group's channels, once for each group.
Array repeated(const Array& scales, int64_t groups) {
  Array out = Array::empty(DType::kF32, {scales.size() * groups});
  for (int64_t i = 0; i < out.size(); ++i)
    out.data<float>()[i] = scales.data<float>()[i % scales.size()];
  return out;
}

class Int8Former final : public PatternRewriter {
 public:
  Int8Former(ir::Function& function, const Int8Kernels& kernels)
      : PatternRewriter(function), kernels_(kernels) {}

 private:
  /// The zero point of a dequantize. One that was computed is a float there; the kernels read the
  /// byte that it was cast from, which they know to be small.
  static Value* zero_point_of(const Operation& dequantize) {
    Value* const zero = dequantize.operands[2];
    if (!zero || !zero->producer || zero->producer->op != &known_ops().cast) return zero;
    Value* const byte = zero->producer->operands[0];
    return is_8_bit(byte->type.dtype) ? byte : zero;
  }

  /// Replaces a convolution, linear layer or matmul of dequantized operands.
  void visit(Iterator at) override {
    Operation& o = **at;
    const bool conv = o.op == &known_ops().conv2d || o.op == &known_ops().conv3d;
    const bool layer = o.op == &known_ops().linear;
    const bool matmul = o.op == &known_ops().matmul;
    if (o.op == &known_ops().conv_transpose) return form_conv_transpose(at);
    if (!(conv || layer || matmul) || o.results[0]->type.dtype != DType::kF32 ||
        has_run_time_size(o.results[0]->type))
      return;
    const Operation* const input = per_tensor_dequantize(o.operands[0]);
    if (!input || has_run_time_size(input->operands[0]->type)) return;
    if (matmul && form_matmul_of_activations(at, *input)) return;
    const bool transposed_y = matmul && attribute(o, "transpose_y").as_bool();
    if (matmul && (attribute(o, "transpose_x").as_bool() || o.operands[0]->type.shape.size() < 2 ||
                   o.operands[1]->type.shape.size() != 2))
      return;
    auto weights = weights_of(o.operands[1], conv || transposed_y ? 0 : 1);
    if (!weights) return;
    if (transposed_y) weights->values = transposed(weights->values);
    if (!kernels_.multiplies(input->operands[0]->type.dtype, weights->values)) return;
    Value* const given_bias = matmul ? nullptr : o.operands[2];
    if (given_bias && given_bias->type.shape.size() != 1) return;

    std::vector<Value*> operands = integer_operands(at, *input, *weights);
    const Attrs before = o.attrs;
    const Op& plain = *o.op;
    o.op = conv ? &known_ops().quantized_conv : &known_ops().quantized_linear;
    o.attrs = default_attrs(*o.op);
    if (conv)
      for (const char* name : {"stride", "padding", "dilation", "groups", "data_format"})
        set_attribute(o, name, before[static_cast<size_t>(plain.attr_index(name))]);
    set_attribute(o, "dtype", DType::kF32);
    o.operands = std::move(operands);
    if (given_bias) o.operands[q::kBias] = accumulator_bias(function_, o, given_bias);
  }

  /// Replaces a transposed convolution, which is traced as the gradient of a convolution for its
  /// input: conv2d_input_grad(weight, x).
  void form_conv_transpose(Iterator at) {
    Operation& o = **at;
    const Operation* const input = per_tensor_dequantize(o.operands[1]);
    if (!input || o.results[0]->type.dtype != DType::kF32 ||
        has_run_time_size(o.results[0]->type) || has_run_time_size(input->operands[0]->type))
      return;
    const TransposedWindow window = {
        attribute(o, "stride").as_ints(), attribute(o, "padding").as_ints(),
        attribute(o, "dilation").as_ints(), attribute(o, "groups").as_int()};
    const Shape& shape = o.operands[0]->type.shape;
    const bool depthwise =
        shape[1].equals(1).value_or(false) && shape[0].equals(window.groups).value_or(false);
    auto weights = weights_of(o.operands[0], depthwise ? 0 : 1);
    if (!weights) return;
    const bool last = attribute(o, "data_format").as_string() == "NHWC";
    const auto axes = phase_axes(shape, image_sizes(o.operands[1]->type.shape, last),
                                 image_sizes(o.results[0]->type.shape, last), window);
    if (!axes || !kernels_.multiplies(input->operands[0]->type.dtype,
                                      phase_weight(weights->values, *axes, window)))
      return;
    if (!depthwise && weights->scale.ndim() == 1)
      weights->scale = repeated(weights->scale, window.groups);
    std::vector<Value*> operands = integer_operands(at, *input, *weights);
    const Attrs before = o.attrs;
    const Op& plain = *o.op;
    forget_uses(o);
    o.op = &known_ops().quantized_conv_transpose;
    o.attrs = default_attrs(*o.op);
    for (const char* name : {"stride", "padding", "dilation", "groups", "data_format"})
      set_attribute(o, name, before[static_cast<size_t>(plain.attr_index(name))]);
    set_attribute(o, "out_shape", before[static_cast<size_t>(plain.attr_index("input_shape"))]);
    set_attribute(o, "dtype", DType::kF32);
    o.operands = std::move(operands);
    note_uses(o);
  }

  /// Replaces a matmul of two activations, or one whose right operand has no constant int8 weights.
  bool form_matmul_of_activations(Iterator at, const Operation& x) {
    Operation& o = **at;
    const Operation* const y = per_tensor_dequantize(o.operands[1]);
    if (!y || !kernels_.matmul || has_run_time_size(y->operands[0]->type) ||
        o.operands[0]->type.shape.size() < 2 || o.operands[1]->type.shape.size() < 2)
      return false;
    const bool transposed_y = attribute(o, "transpose_y").as_bool();
    if (!attribute(o, "transpose_x").as_bool() && o.operands[1]->type.shape.size() == 2 &&
        weights_of(o.operands[1], transposed_y ? 0 : 1))
      return false;
    std::vector<Value*> operands(q::kYZero + 1, nullptr);
    operands[q::kX] = x.operands[0];
    operands[q::kWeight] = y->operands[0];
    operands[q::kXZero] = zero_point_of(x);
    operands[q::kYZero] = zero_point_of(*y);
    operands[q::kScale] = scale_product(at, x.operands[1], y->operands[1]);
    const Attrs before = o.attrs;
    forget_uses(o);
    o.op = &known_ops().quantized_matmul;
    o.attrs = default_attrs(*o.op);
    set_attribute(o, "transpose_x", before[0]);
    set_attribute(o, "transpose_y", before[1]);
    set_attribute(o, "dtype", DType::kF32);
    o.operands = std::move(operands);
    note_uses(o);
    return true;
  }

  /// The operands of a layer of integers: x, as `input` dequantizes it, and constant weights.
  std::vector<Value*> integer_operands(Iterator at, const Operation& input,
                                       const Weights& weights) {
    std::vector<Value*> operands(q::kOperandCount, nullptr);
    operands[q::kX] = input.operands[0];
    operands[q::kWeight] = function_.add_constant(weights.values);
    operands[q::kXZero] = zero_point_of(input);
    operands[q::kScale] = scale_product(at, input.operands[1], weights.scale);
    return operands;
  }

  /// The product of the scales of two values.
  Value* scale_product(Iterator before, Value* x_scale, Value* y_scale) {
    if (y_scale->constant) {
      Array scalar = Array::scalar<float>(static_cast<float>(y_scale->constant->number()));
      return scale_product(before, x_scale, scalar);
    }
    if (x_scale->constant) return scale_product(before, y_scale, x_scale);
    Value* const result = function_.new_value(x_scale->type);
    insert(before, **before, known_ops().multiply, {x_scale, y_scale}, {}, result);
    return result;
  }

  /// The product of the input's scale and the weights'.
  Value* scale_product(Iterator before, Value* input_scale, const Array& weight_scale) {
    if (input_scale->constant) {
      Array both = Array::empty(DType::kF32, weight_scale.shape);
      const auto first = static_cast<float>(input_scale->constant->number());
      for (int64_t i = 0; i < both.size(); ++i)
        both.data<float>()[i] = first * weight_scale.data<float>()[i];
      return function_.add_constant(both);
    }
    Value* const constant = function_.add_constant(weight_scale);
    Value* const result = function_.new_value(constant->type);
    insert(before, **before, known_ops().multiply, {constant, input_scale}, {}, result);
    return result;
  }

  const Int8Kernels& kernels_;
};

}  // namespace

void form_int8_ops(ir::Function& function, const Int8Kernels& kernels) {
  Int8Former(function, kernels).run();
}

}  // namespace paddle::passes::qdq
