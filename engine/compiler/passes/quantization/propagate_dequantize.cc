// First step of QDQ lowering: propagates dequantize below operations that only move elements, so
// that these move 8-bit values and the dequantize reaches the operation that computes with it.

#include <algorithm>

#include "compiler/passes/pattern_rewriter.h"
#include "compiler/passes/quantization/qdq.h"
#include "ops/core/call.h"

namespace paddle::passes::qdq {
namespace {

using ir::Operation;
using ir::Value;

class DequantizePropagation final : public PatternRewriter {
 public:
  DequantizePropagation(ir::Function& function, const Evaluate& evaluate)
      : PatternRewriter(function), evaluate_(evaluate) {}

 private:
  /// Moves a dequantize from before an operation that only moves elements to after it; removes a
  /// quantize that reverts a dequantize.
  void visit(Iterator at) override {
    Operation& o = **at;
    if (o.op == &known_ops().quantize) {
      if (!cancel(at)) requantize(at);
      return;
    }
    if (!o.regions.empty() || o.results.empty() || !moves_elements(o)) return;
    const bool concat = o.op == &known_ops().concat;
    const size_t table = o.op == &known_ops().embedding ? 1 : 0;
    Operation* const first = movable_dequantize(o, table);
    if (!first && (table == 1 ? gather_rows(at) : rearrange_constants(at))) return;
    if (!first || (o.op == &known_ops().max_pool && !is_positive(first->operands[1]))) return;
    const auto same_parameters = [&](const Value* v) {
      Operation* const other = per_tensor_dequantize(v);
      return other && other->operands[0]->type.dtype == first->operands[0]->type.dtype &&
             same_scalar(other->operands[1], first->operands[1]) &&
             same_scalar(other->operands[2], first->operands[2]);
    };
    if (concat && !std::all_of(o.operands.begin(), o.operands.end(), same_parameters)) return;
    std::vector<Value*> scales = {first->operands[1], first->operands[2]};
    // Per-channel parameters of a transposed or unsqueezed weight follow it.
    for (Value*& v : scales)
      if (!is_scalar(v)) v = moved_parameter(o, v);
    Value* const floats = o.results[0];
    Value* quantized = nullptr;
    TensorType type = floats->type;
    type.dtype = first->operands[0]->type.dtype;
    if (o.operands.size() == 1 && o.results.size() == 1 && first->operands[0]->constant &&
        is_constant(type.shape)) {
      quantized = function_.add_constant(
          evaluated(*o.op, o.attrs, {&*first->operands[0]->constant}, type).contiguous());
      insert(at, o, known_ops().dequantize, {quantized, scales[0], scales[1]}, {}, floats);
      erase(at);
      return;
    }
    quantized = function_.new_value(type);
    quantized->producer = &o;
    forget_uses(o);
    for (size_t i = 0; i < o.operands.size(); ++i)
      if (concat || i == table) o.operands[i] = o.operands[i]->producer->operands[0];
    note_uses(o);
    o.results[0] = quantized;
    insert(next_, o, known_ops().dequantize, {quantized, scales[0], scales[1]}, {}, floats);
  }

  static bool moves_elements(const Operation& o) {
    const Ops& k = known_ops();
    if (o.op == &k.concat || o.op == &k.index_select || o.op == &k.max_pool) return true;
    if (o.op == &k.embedding) return attribute(o, "padding_idx").is_none();
    return o.op->def->view && o.operands.size() == 1;
  }

  /// The dequantize of an operand that can move after `o`: a per-tensor one, or, for a transpose
  /// or unsqueeze, a per-channel one with constant parameters.
  static Operation* movable_dequantize(const Operation& o, size_t operand) {
    Operation* const from = produced_by(o.operands[operand], known_ops().dequantize);
    if (!from || !is_8_bit(from->operands[0]->type.dtype)) return nullptr;
    if (per_tensor_dequantize(o.operands[operand])) return from;
    const auto movable = [&](const Value* v) {
      return is_scalar(v) ||
             (v->constant && v->type.shape.size() == o.operands[operand]->type.shape.size());
    };
    const bool keeps_axes = o.op == &known_ops().transpose || o.op == &known_ops().unsqueeze;
    return keeps_axes && movable(from->operands[1]) && movable(from->operands[2]) ? from : nullptr;
  }

  /// A scale or zero point after the transpose or unsqueeze `o`.
  Value* moved_parameter(const Operation& o, const Value* v) {
    TensorType type = v->type;
    type.shape = infer_results(*o.op, o.attrs, {Tensor(*v->constant)}).results[0].shape;
    return function_.add_constant(evaluated(*o.op, o.attrs, {&*v->constant}, type).contiguous());
  }

  /// Gathers rows of a table of integers, and the scale of each row.
  bool gather_rows(Iterator at) {
    Operation& o = **at;
    const Operation* const from = produced_by(o.operands[1], known_ops().dequantize);
    if (!from || !is_8_bit(from->operands[0]->type.dtype)) return false;
    const auto is_column = [](const Value* v) {
      return v->type.shape.size() == 2 && v->type.shape[1].equals(1).value_or(false);
    };
    Value* const scale = from->operands[1];
    Value* zero = from->operands[2];
    if (!is_column(scale) || !(is_scalar(zero) || is_column(zero))) return false;
    Value* const index = o.operands[0];
    const Attrs attrs = o.attrs;
    Value* const floats = o.results[0];
    const auto typed = [&](const Value* rows, bool column) {
      TensorType type = floats->type;
      type.dtype = rows->type.dtype;
      if (column) type.shape.back() = 1;
      return function_.new_value(type);
    };
    const auto gathered = [&](Value* column) {
      Value* const out = typed(column, true);
      insert(at, o, known_ops().embedding, {index, column}, attrs, out);
      return out;
    };
    Value* const scales = gathered(scale);
    if (is_column(zero)) zero = gathered(zero);
    Value* const integers = typed(from->operands[0], false);
    integers->producer = &o;
    forget_uses(o);
    o.operands[1] = from->operands[0];
    note_uses(o);
    o.results[0] = integers;
    insert(next_, o, known_ops().dequantize, {integers, scales, zero}, {}, floats);
    return true;
  }

  /// Slices, joins or squeezes constant integers whose scales differ along one axis, such as the
  /// gates of a recurrent layer, before they are dequantized.
  bool rearrange_constants(Iterator at) {
    Operation& o = **at;
    const Ops& k = known_ops();
    if ((o.op != &k.slice && o.op != &k.concat && o.op != &k.squeeze) ||
        !is_constant(o.results[0]->type.shape))
      return false;
    std::vector<Array> integers, scales;
    const Value* zero = nullptr;
    for (const Value* operand : o.operands) {
      const Operation* const from = produced_by(operand, k.dequantize);
      if (!from || !from->operands[0]->constant || !from->operands[1]->constant ||
          !is_constant_scalar(from->operands[2]) || !is_8_bit(from->operands[0]->type.dtype) ||
          (zero && !same_scalar(zero, from->operands[2])) ||
          from->operands[0]->constant->size() > kMaxDequantized)
        return false;
      zero = from->operands[2];
      integers.push_back(*from->operands[0]->constant);
      scales.push_back(broadcast(*from->operands[1]->constant, integers.back().shape));
      if (integers.back().dtype != integers.front().dtype) return false;
    }
    const auto moved = [&](const std::vector<Array>& arrays) {
      std::vector<const Array*> operands;
      for (const Array& array : arrays) operands.push_back(&array);
      TensorType type = o.results[0]->type;
      type.dtype = arrays.front().dtype;
      return evaluated(*o.op, o.attrs, operands, type).contiguous();
    };
    const auto scale = along_one_axis(moved(scales));
    if (!scale) return false;
    Value* const constant = function_.add_constant(moved(integers));
    insert(at, o, k.dequantize,
           {constant, function_.add_constant(*scale), const_cast<Value*>(zero)}, {}, o.results[0]);
    erase(at);
    return true;
  }

  /// Floats that broadcast to a shape, written out.
  static Array broadcast(const Array& values, const Dims& shape) {
    Array view = values.contiguous();
    Dims strides(shape.size(), 0);
    const size_t skipped = shape.size() - view.shape.size();
    for (size_t i = 0; i < view.shape.size(); ++i)
      if (view.shape[i] != 1) strides[skipped + i] = view.strides[i];
    view.shape = shape;
    view.strides = strides;
    return view.contiguous();
  }

  /// Values of which each depends on its place along one axis only, with size 1 along the others.
  static std::optional<Array> along_one_axis(const Array& values) {
    const float* const all = values.data<float>();
    for (size_t axis = 0; axis < values.shape.size(); ++axis) {
      const int64_t count = values.shape[axis], stride = values.strides[axis];
      bool fits = count > 0;
      for (int64_t i = 0; fits && i < values.size(); ++i)
        fits = all[i] == all[i / stride % count * stride];
      if (!fits) continue;
      Dims shape(values.shape.size(), 1);
      shape[axis] = count;
      Array out = Array::empty(DType::kF32, shape);
      for (int64_t i = 0; i < count; ++i) out.data<float>()[i] = all[i * stride];
      return out;
    }
    return std::nullopt;
  }

  /// Cancels a quantize with the same scale and zero point as the dequantize before it.
  bool cancel(Iterator at) {
    const Operation& o = **at;
    const Operation* const from = per_tensor_dequantize(o.operands[0]);
    if (!from || from->operands[0]->type.dtype != o.results[0]->type.dtype ||
        !same_scalar(from->operands[1], o.operands[1]) ||
        !same_scalar(from->operands[2], o.operands[2]) || !is_positive(o.operands[1]))
      return false;
    replace(o.results[0], from->operands[0]);
    return true;
  }

  /// Requantizes a constant at compile time: some exporters give shared weights several scales.
  void requantize(Iterator at) {
    const Operation& o = **at;
    const Operation* const from = produced_by(o.operands[0], known_ops().dequantize);
    const auto constants = [](const Operation& operation) {
      return std::all_of(operation.operands.begin(), operation.operands.end(),
                         [](const Value* v) { return v && v->constant; });
    };
    if (!from || !constants(*from) || !o.operands[1]->constant || !o.operands[2]->constant ||
        from->operands[0]->constant->size() > kMaxDequantized)
      return;
    const auto value = [&](const Operation& operation, const Array& x) {
      return evaluated(*operation.op, operation.attrs,
                       {&x, &*operation.operands[1]->constant, &*operation.operands[2]->constant},
                       operation.results[0]->type);
    };
    const Array floats = value(*from, *from->operands[0]->constant);
    replace(o.results[0], function_.add_constant(value(o, floats).contiguous()));
  }

  Array evaluated(const Op& op, const Attrs& attrs, const std::vector<const Array*>& operands,
                  const TensorType& result) const {
    return evaluate_(op, attrs, operands, {result})[0];
  }

  const Evaluate& evaluate_;
};

}  // namespace

void propagate_dequantize(ir::Function& function, const Evaluate& evaluate) {
  DequantizePropagation(function, evaluate).run();
}

}  // namespace paddle::passes::qdq
