// Movement: operations that put values elsewhere, and max pooling, take integers instead of the
// numbers that these stand for.

#include <algorithm>

#include "compiler/passes/integers.h"
#include "ops/call.h"

namespace paddle::passes::integers {
namespace {

using ir::Operation;
using ir::Value;

class Mover final : public Walk {
 public:
  Mover(ir::Function& function, const Evaluate& evaluate) : Walk(function), evaluate_(evaluate) {}

 private:
  /// Puts a dequantize after the operation at `place`, which moves elements alone, instead of
  /// before it; drops a quantize that undoes a dequantize.
  void visit(Place place) override {
    Operation& o = **place;
    if (o.op == &known().quantize) {
      if (!undo(place)) requantize(place);
      return;
    }
    if (!o.regions.empty() || o.results.empty() || !moves_elements(o)) return;
    const bool joins = o.op == &known().concat;
    const size_t table = o.op == &known().embedding ? 1 : 0;
    Operation* const first = from_bytes_per_axis(o, table);
    if (!first || (o.op == &known().max_pool && !is_positive(first->operands[1]))) return;
    const auto likewise = [&](const Value* v) {
      Operation* const other = from_bytes(v);
      return other && other->operands[0]->type.dtype == first->operands[0]->type.dtype &&
             same_number(other->operands[1], first->operands[1]) &&
             same_number(other->operands[2], first->operands[2]);
    };
    if (joins && !std::all_of(o.operands.begin(), o.operands.end(), likewise)) return;
    std::vector<Value*> scales = {first->operands[1], first->operands[2]};
    // Weights with a scale per column, turned, or with a new axis: the scales are turned with them.
    for (Value*& v : scales)
      if (!is_one_number(v)) v = turned(o, v);
    Value* const numbers = o.results[0];
    Value* integers = nullptr;
    TensorType type = numbers->type;
    type.dtype = first->operands[0]->type.dtype;
    if (o.operands.size() == 1 && o.results.size() == 1 && first->operands[0]->constant &&
        is_constant(type.shape)) {
      integers = function_.add_constant(
          evaluated(*o.op, o.attrs, {&*first->operands[0]->constant}, type).contiguous());
      insert(place, o, known().dequantize, {integers, scales[0], scales[1]}, {}, numbers);
      erase(place);
      return;
    }
    integers = function_.new_value(type);
    integers->producer = &o;
    forget_reads(o);
    for (size_t i = 0; i < o.operands.size(); ++i)
      if (joins || i == table) o.operands[i] = o.operands[i]->producer->operands[0];
    note_reads(o);
    o.results[0] = integers;
    insert(next_, o, known().dequantize, {integers, scales[0], scales[1]}, {}, numbers);
  }

  static bool moves_elements(const Operation& o) {
    const Ops& k = known();
    if (o.op == &k.concat || o.op == &k.index_select || o.op == &k.max_pool) return true;
    if (o.op == &k.embedding) return attribute(o, "padding_idx").is_none();
    return o.op->def->view && o.operands.size() == 1;
  }

  /// Like `from_bytes`, but for a transpose or a new axis also with a known scale per place of an
  /// axis.
  static Operation* from_bytes_per_axis(const Operation& o, size_t operand) {
    Operation* const from = made_by(o.operands[operand], known().dequantize);
    if (!from || !is_byte(from->operands[0]->type.dtype)) return nullptr;
    if (from_bytes(o.operands[operand])) return from;
    const auto turns = [&](const Value* v) {
      return is_one_number(v) ||
             (v->constant && v->type.shape.size() == o.operands[operand]->type.shape.size());
    };
    const bool keeps_axes = o.op == &known().transpose || o.op == &known().unsqueeze;
    return keeps_axes && turns(from->operands[1]) && turns(from->operands[2]) ? from : nullptr;
  }

  Value* turned(const Operation& o, const Value* v) {
    TensorType type = v->type;
    type.shape = infer(*o.op, o.attrs, {Tensor(*v->constant)}).results[0].shape;
    return function_.add_constant(evaluated(*o.op, o.attrs, {&*v->constant}, type).contiguous());
  }

  /// A quantize of what it gives back.
  bool undo(Place place) {
    const Operation& o = **place;
    const Operation* const from = from_bytes(o.operands[0]);
    if (!from || from->operands[0]->type.dtype != o.results[0]->type.dtype ||
        !same_number(from->operands[1], o.operands[1]) ||
        !same_number(from->operands[2], o.operands[2]) || !is_positive(o.operands[1]))
      return false;
    replace(o.results[0], from->operands[0]);
    return true;
  }

  /// Constant integers in other steps, as weights that layers share come from some tools.
  void requantize(Place place) {
    const Operation& o = **place;
    const Operation* const from = made_by(o.operands[0], known().dequantize);
    const auto constants = [](const Operation& made) {
      return std::all_of(made.operands.begin(), made.operands.end(),
                         [](const Value* v) { return v && v->constant; });
    };
    if (!from || !constants(*from) || !o.operands[1]->constant || !o.operands[2]->constant ||
        from->operands[0]->constant->size() > kMaxUnpacked)
      return;
    const auto value = [&](const Operation& made, const Array& x) {
      return evaluated(*made.op, made.attrs,
                       {&x, &*made.operands[1]->constant, &*made.operands[2]->constant},
                       made.results[0]->type);
    };
    const Array numbers = value(*from, *from->operands[0]->constant);
    replace(o.results[0], function_.add_constant(value(o, numbers).contiguous()));
  }

  Array evaluated(const Op& op, const Attrs& attrs, const std::vector<const Array*>& operands,
                  const TensorType& result) const {
    return evaluate_(op, attrs, operands, {result})[0];
  }

  const Evaluate& evaluate_;
};

}  // namespace

void move_integers(ir::Function& function, const Evaluate& evaluate) {
  Mover(function, evaluate).run();
}

}  // namespace paddle::passes::integers
