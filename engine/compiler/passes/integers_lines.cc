// Lines: a convolution along one axis is one of images of height 1, between views that put the axis
// in and take it out. What is done to its result changes places with the view that takes the axis
// out, so that it stands beside the convolution, and views that undo each other go.

#include "compiler/passes/integers.h"
#include "ops/call.h"

namespace paddle::passes::integers {
namespace {

using ir::Operation;
using ir::Value;

class Lines final : public Walk {
 public:
  using Walk::Walk;

 private:
  void visit(Place place) override {
    Operation& o = **place;
    if (o.op == &known().unsqueeze) return undo(place);
    if (o.op != &known().squeeze || !made_by(o.operands[0], known().conv) ||
        has_run_time_size(o.operands[0]->type))
      return;
    while (Operation* const next = only_reader(o.results[0]))
      if (!change_places(place, *next)) break;
  }

  void undo(Place place) {
    const Operation& o = **place;
    const Operation* const out = made_by(o.operands[0], known().squeeze);
    if (out && same_type(out->operands[0]->type, o.results[0]->type))
      replace(o.results[0], out->operands[0]);
  }

  /// Element by element, with operands that are numbers or have the image's rank beside it.
  static bool is_elementwise(const Operation& o) {
    const Ops& k = known();
    if (o.op == &k.relu || o.op == &k.clip || o.op == &k.cast) return true;
    if (o.op == &k.quantize || o.op == &k.dequantize)
      return is_one_number(o.operands[1]) && is_one_number(o.operands[2]);
    return o.op == &k.add || o.op == &k.multiply;
  }

  /// image → view → next becomes image → next → view.
  bool change_places(Place view_place, Operation& next) {
    Operation& view = **view_place;
    Value *const line = view.results[0], *const image = view.operands[0];
    Value* const result = next.results[0];
    if (!is_elementwise(next) || !same_shape(result->type.shape, line->type.shape)) return false;
    const auto fits = [&](const Value* v) {
      return v == line || is_one_number(v) || v->type.shape.size() == line->type.shape.size();
    };
    if (!std::all_of(next.operands.begin(), next.operands.end(), fits)) return false;
    Place next_place = view_place;
    while (next_place->get() != &next) ++next_place;
    forget_reads(view);
    forget_reads(next);
    std::vector<Value*> operands;
    for (Value* v : next.operands)
      operands.push_back(v == line ? image : is_one_number(v) ? v : with_axis(v, view, next_place));
    next.operands = std::move(operands);
    Value* const wide = function_.new_value({result->type.dtype, image->type.shape});
    wide->producer = &next;
    wide->index = 0;
    next.results[0] = wide;
    view.operands[0] = wide;
    view.results[0] = result;
    result->producer = &view;
    result->index = 0;
    function_.body.operations.splice(std::next(next_place), function_.body.operations, view_place);
    note_reads(next);
    note_reads(view);
    return true;
  }

  /// `v` with the axis that `view` takes out, made before `place`; as integers where it comes from
  /// integers.
  Value* with_axis(Value* v, const Operation& view, Place place) {
    if (const Operation* const from = from_bytes(v)) {
      Value* const integers = with_axis(from->operands[0], view, place);
      Value* const numbers = function_.new_value({v->type.dtype, integers->type.shape});
      insert(place, **place, known().dequantize, {integers, from->operands[1], from->operands[2]},
             {}, numbers);
      return numbers;
    }
    Attrs attrs = default_attrs(known().unsqueeze);
    attrs[0] = attribute(view, "axis");
    TensorType type = v->type;
    type.shape =
        infer(known().unsqueeze, attrs, {Tensor(TensorType(type), nullptr)}).results[0].shape;
    const Operation* const out = made_by(v, known().squeeze);
    if (out && same_type(out->operands[0]->type, type)) return out->operands[0];
    Value* const wide = function_.new_value(type);
    insert(place, **place, known().unsqueeze, {v}, std::move(attrs), wide);
    return wide;
  }
};

}  // namespace

void bring_images_together(ir::Function& function) { Lines(function).run(); }

}  // namespace paddle::passes::integers
