// Third step of QDQ lowering. Conv1d is conv2d with height 1 between unsqueeze and squeeze. Sinks
// the squeeze below elementwise consumers so that they can fuse into the convolution, and cancels
// pairs of squeeze and unsqueeze, so that a stack of conv1d stays 4-D throughout.

#include "compiler/passes/pattern_rewriter.h"
#include "compiler/passes/quantization/qdq.h"
#include "ops/core/call.h"

namespace paddle::passes::qdq {
namespace {

using ir::Operation;
using ir::Value;

class SqueezeSinking final : public PatternRewriter {
 public:
  using PatternRewriter::PatternRewriter;

 private:
  void visit(Iterator at) override {
    Operation& o = **at;
    if (o.op == &known_ops().unsqueeze) return cancel(at);
    if (o.op != &known_ops().squeeze || !produced_by_convolution(o.operands[0]) ||
        has_run_time_size(o.operands[0]->type))
      return;
    while (Operation* const next = only_consumer(o.results[0]))
      if (!sink_below(at, *next)) break;
  }

  static bool produced_by_convolution(const Value* v) {
    return produced_by(v, known_ops().quantized_conv) ||
           produced_by(v, known_ops().quantized_conv_transpose);
  }

  void cancel(Iterator at) {
    const Operation& o = **at;
    const Operation* const out = produced_by(o.operands[0], known_ops().squeeze);
    if (out && same_type(out->operands[0]->type, o.results[0]->type))
      replace(o.results[0], out->operands[0]);
  }

  /// Elementwise, so that it commutes with the squeeze.
  static bool is_elementwise(const Operation& o) {
    const Ops& k = known_ops();
    if (o.op == &k.relu || o.op == &k.clip || o.op == &k.cast) return true;
    if (o.op == &k.quantize || o.op == &k.dequantize)
      return is_scalar(o.operands[1]) && is_scalar(o.operands[2]);
    return o.op == &k.add || o.op == &k.multiply;
  }

  /// Turns squeeze → next into next → squeeze.
  bool sink_below(Iterator view_at, Operation& next) {
    Operation& view = **view_at;
    Value *const output = view.results[0], *const input = view.operands[0];
    Value* const result = next.results[0];
    if (!is_elementwise(next) || !same_shape(result->type.shape, output->type.shape)) return false;
    const auto fits = [&](const Value* v) {
      return v == output || is_scalar(v) || v->type.shape.size() == output->type.shape.size();
    };
    if (!std::all_of(next.operands.begin(), next.operands.end(), fits)) return false;
    Iterator next_at = view_at;
    while (next_at->get() != &next) ++next_at;
    forget_uses(view);
    forget_uses(next);
    std::vector<Value*> operands;
    for (Value* v : next.operands)
      operands.push_back(v == output ? input : is_scalar(v) ? v : unsqueezed(v, view, next_at));
    next.operands = std::move(operands);
    Value* const sunk = function_.new_value({result->type.dtype, input->type.shape});
    sunk->producer = &next;
    sunk->index = 0;
    next.results[0] = sunk;
    view.operands[0] = sunk;
    view.results[0] = result;
    result->producer = &view;
    result->index = 0;
    function_.body.operations.splice(std::next(next_at), function_.body.operations, view_at);
    note_uses(next);
    note_uses(view);
    return true;
  }

  /// `v` with the axis that `view` removes, created before `at`. A dequantized value is unsqueezed
  /// before its dequantize.
  Value* unsqueezed(Value* v, const Operation& view, Iterator at) {
    if (const Operation* const from = per_tensor_dequantize(v)) {
      Value* const quantized = unsqueezed(from->operands[0], view, at);
      Value* const floats = function_.new_value({v->type.dtype, quantized->type.shape});
      insert(at, **at, known_ops().dequantize, {quantized, from->operands[1], from->operands[2]},
             {}, floats);
      return floats;
    }
    Attrs attrs = default_attrs(known_ops().unsqueeze);
    attrs[0] = attribute(view, "axis");
    TensorType type = v->type;
    type.shape = infer_results(known_ops().unsqueeze, attrs, {Tensor(TensorType(type), nullptr)})
                     .results[0]
                     .shape;
    const Operation* const out = produced_by(v, known_ops().squeeze);
    if (out && same_type(out->operands[0]->type, type)) return out->operands[0];
    Value* const out_value = function_.new_value(type);
    insert(at, **at, known_ops().unsqueeze, {v}, std::move(attrs), out_value);
    return out_value;
  }
};

}  // namespace

void sink_squeeze(ir::Function& function) { SqueezeSinking(function).run(); }

}  // namespace paddle::passes::qdq
