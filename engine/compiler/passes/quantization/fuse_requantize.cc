// Last step of QDQ lowering: fuses scale, bias, residual, clamp and the next quantize into the
// integer operation before them, so that its kernel requantizes accumulators as it stores them.

#include "compiler/passes/pattern_rewriter.h"
#include "compiler/passes/quantization/qdq.h"
#include "ops/core/call.h"

namespace paddle::passes::qdq {
namespace {

using ir::Operation;
using ir::Value;
namespace q = quantized;

class RequantizeFusion final : public PatternRewriter {
 public:
  using PatternRewriter::PatternRewriter;

 private:
  void visit(Iterator at) override {
    if (!is_int8_op(*(*at)->op)) return;
    at_ = at;
    forget_uses(**at);
    while (fuse_next()) {
    }
    note_uses(**at);
  }

  Operation& int8_op() { return **at_; }

  bool fuse_next() {
    Operation& o = int8_op();
    Value* const made = o.results[0];
    Operation* const next = only_consumer(made);
    if (!next || has_run_time_size(made->type)) return false;
    if (!o.operands[q::kScale]) return fuse_scale(*next);
    if (o.operands[q::kOutScale]) return fuse_residual(*next);
    const bool unbound = attribute(o, "low").is_none() && attribute(o, "high").is_none();
    if (next->op == &known_ops().add && unbound && !o.operands[q::kStepScale] &&
        !o.operands[q::kResidual])
      return fuse_bias(*next) || (adds_residuals() && fuse_float_residual(*next));
    if (unbound && next->op == &known_ops().relu) {
      set_attribute(o, "low", 0.0);
      return fuse(*next);
    }
    if (unbound && next->op == &known_ops().clip) return fuse_bounds(o, *next);
    if (next->op == &known_ops().quantize && !o.operands[q::kResidual]) return fuse_quantize(*next);
    return false;
  }

  bool fuse_bounds(Operation& o, const Operation& next) {
    const AttrValue &low = attribute(next, "min"), &high = attribute(next, "max");
    const auto as_float = [](const AttrValue& v) {
      return v.is_none() ? v : AttrValue(v.as_double());
    };
    if (low.is_none() && high.is_none()) return false;
    if (!low.is_none() && !high.is_none() && low.as_double() > high.as_double()) return false;
    set_attribute(o, "low", as_float(low));
    set_attribute(o, "high", as_float(high));
    return fuse(next);
  }

  bool fuse_quantize(const Operation& next) {
    const Value &scale = *next.operands[1], &zero = *next.operands[2];
    if (!is_positive(&scale) || !is_constant_scalar(&zero) ||
        !is_8_bit(next.results[0]->type.dtype))
      return false;
    Operation& o = int8_op();
    o.operands[q::kOutScale] = next.operands[1];
    o.operands[q::kOutZero] = next.operands[2];
    set_attribute(o, "dtype", next.results[0]->type.dtype);
    return fuse(next);
  }

  /// int32 accumulators that are cast to float32 and scaled.
  bool fuse_scale(const Operation& cast) {
    if (cast.op != &known_ops().cast || cast.results[0]->type.dtype != DType::kF32) return false;
    const Operation* const times = only_consumer(cast.results[0]);
    if (!times || times->op != &known_ops().multiply ||
        !same_shape(times->results[0]->type.shape, cast.results[0]->type.shape))
      return false;
    const size_t other = times->operands[0] == cast.results[0] ? 1 : 0;
    Value* const scale = per_channel(times->operands[other], *times);
    if (!scale) return false;
    Operation& o = int8_op();
    o.operands[q::kScale] = scale;
    set_attribute(o, "dtype", DType::kF32);
    return fuse(cast) && fuse(*times);
  }

  /// `v` as a scalar or as one value per output channel, created before `consumer` if needed; null
  /// if it is neither.
  Value* per_channel(Value* v, const Operation& consumer) {
    const Operation& o = int8_op();
    const Shape& result = o.results[0]->type.shape;
    const int rank = static_cast<int>(result.size());
    if (v->type.dtype != DType::kF32 || v->type.shape.size() > result.size()) return nullptr;
    const bool is_conv =
        o.op == &known_ops().quantized_conv || o.op == &known_ops().quantized_conv_transpose;
    const bool last = !is_conv || attribute(o, "data_format").as_string().ends_with('C');
    const int channel = last ? rank - 1 : 1, axis = varying_axis(v, rank);
    if (axis != -1 && axis != channel) return nullptr;
    const Dim channels = result[static_cast<size_t>(channel)];
    const Shape wanted = axis == -1 ? Shape() : Shape{channels};
    if (same_shape(v->type.shape, wanted)) return v;
    if (!channels.is_constant()) return nullptr;
    if (v->constant) {
      Array all = flattened(*v->constant);
      if (axis == -1) {
        all.shape = {};
        all.strides = {};
      }
      return function_.add_constant(all);
    }
    Value* const reshaped = function_.new_value({DType::kF32, wanted});
    Attrs attrs = default_attrs(known_ops().reshape);
    attrs[static_cast<size_t>(known_ops().reshape.attr_index("shape"))] = AttrValue(wanted);
    insert(find(consumer), consumer, known_ops().reshape, {v}, std::move(attrs), reshaped);
    return reshaped;
  }

  bool fuse_bias(const Operation& sum) {
    Operation& o = int8_op();
    if (o.operands[q::kBias]) return false;
    const size_t other = sum.operands[0] == o.results[0] ? 1 : 0;
    Value* const given = sum.operands[other];
    if (given == o.results[0] || !same_shape(sum.results[0]->type.shape, o.results[0]->type.shape))
      return false;
    const Operation* const from = produced_by(given, known_ops().dequantize);
    if (from && from->operands[0]->constant) {
      if (from->operands[0]->type.shape.size() != 1) return false;
      o.operands[q::kBias] = accumulator_bias(function_, o, given);
    } else {
      Value* const bias = per_channel(given, sum);
      if (!bias || bias->type.shape.empty()) return false;
      o.operands[q::kBias] = bias;
    }
    return fuse(sum);
  }

  /// No transposed convolution adds a residual: its pixels are rearranged after it.
  bool adds_residuals() { return int8_op().op != &known_ops().quantized_conv_transpose; }

  /// A float residual of the result's shape.
  bool fuse_float_residual(const Operation& sum) {
    Operation& o = int8_op();
    const size_t other = sum.operands[0] == o.results[0] ? 1 : 0;
    Value* const given = sum.operands[other];
    if (given == o.results[0] || !same_type(given->type, o.results[0]->type) || given->constant)
      return false;
    const Operation* const after = only_consumer(sum.results[0]);
    if (after && after->op == &known_ops().quantize)
      return false;  // faster as one elementwise group
    o.operands[q::kResidual] = given;
    return fuse(sum);
  }

  /// quantize → dequantize → add of a quantized residual → clamp → quantize: the first quantize
  /// becomes an intermediate requantization. Not for quantized_matmul, where no fast kernel adds a
  /// residual with a zero point.
  bool fuse_residual(const Operation& dequantize) {
    Operation& o = int8_op();
    if (o.op == &known_ops().quantized_matmul || !adds_residuals() || o.operands[q::kStepScale] ||
        o.operands[q::kResidual] || !attribute(o, "low").is_none() ||
        !attribute(o, "high").is_none() || !per_tensor_dequantize(dequantize.results[0]) ||
        !same_scalar(dequantize.operands[1], o.operands[q::kOutScale]) ||
        !same_scalar(dequantize.operands[2], o.operands[q::kOutZero]))
      return false;
    const Operation* const sum = only_consumer(dequantize.results[0]);
    if (!sum || sum->op != &known_ops().add) return false;
    const Value* const other = sum->operands[sum->operands[0] == dequantize.results[0] ? 1 : 0];
    const Operation* const residual = per_tensor_dequantize(other);
    if (!residual || residual == &dequantize || !is_positive(residual->operands[1]) ||
        !is_constant_scalar(residual->operands[2]) ||
        !same_shape(residual->operands[0]->type.shape, o.results[0]->type.shape))
      return false;
    const Operation* last = only_consumer(sum->results[0]);
    const Operation* bounds = nullptr;
    if (last && last->op == &known_ops().relu) {
      bounds = last;
      last = only_consumer(bounds->results[0]);
    }
    if (!last || last->op != &known_ops().quantize || !is_positive(last->operands[1]) ||
        !is_constant_scalar(last->operands[2]) || !is_8_bit(last->results[0]->type.dtype))
      return false;
    o.operands[q::kStepScale] = o.operands[q::kOutScale];
    o.operands[q::kStepZero] = o.operands[q::kOutZero];
    set_attribute(o, "step_dtype", o.results[0]->type.dtype);
    o.operands[q::kResidual] = residual->operands[0];
    o.operands[q::kResidualScale] = residual->operands[1];
    o.operands[q::kResidualZero] = residual->operands[2];
    o.operands[q::kOutScale] = last->operands[1];
    o.operands[q::kOutZero] = last->operands[2];
    set_attribute(o, "dtype", last->results[0]->type.dtype);
    fuse(dequantize);
    fuse(*sum);
    if (bounds) {
      set_attribute(o, "low", 0.0);
      fuse(*bounds);
    }
    return fuse(*last);
  }

  /// The position of an operation after the int8 operation.
  Iterator find(const Operation& o) {
    Iterator at = at_;
    while (at->get() != &o) ++at;
    return at;
  }

  /// Lets the int8 operation produce the result of `next`, its consumer, which is erased.
  bool fuse(const Operation& next) {
    Operation& o = int8_op();
    Value* const result = next.results[0];
    const Iterator at = find(next);
    // Moves it to where `next` was, since it may read values that are produced in between.
    function_.body.operations.splice(at, function_.body.operations, at_);
    result->producer = &o;
    result->index = 0;
    o.results[0] = result;
    erase(at);
    return true;
  }

  Iterator at_;
};

}  // namespace

void fuse_requantize(ir::Function& function) { RequantizeFusion(function).run(); }

}  // namespace paddle::passes::qdq
