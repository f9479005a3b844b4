// Slices put together again: the gradient of what was cut along an axis (queries, keys and values
// of one product, halves of a gate) is a sum of tensors that hold one piece each between zeros.
// Where the pieces cover the axis, it is their concatenation.

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ops/call.h"
#include "ops/generated/attrs.h"
#include "passes/passes.h"

namespace paddle::passes {
namespace {

using ir::Operation;
using ir::Value;

struct Piece {
  int64_t start, end;
  Value* value;
};

class SliceJoiner {
 public:
  explicit SliceJoiner(ir::Function& function) : function_(function) {
    const auto count = [&](const Value* v) { ++uses_[v]; };
    for (const auto& o : function.body.operations) ir::for_each_read(*o, count);
    for (const Value* v : function.body.results) count(v);
  }

  void run() {
    auto& operations = function_.body.operations;
    for (auto it = operations.rbegin(); it != operations.rend(); ++it)
      if ((*it)->op == &add_ && inside_.count(it->get()) == 0) join(**it);
  }

 private:
  /// Turns the sum into a concatenation if it is one.
  void join(Operation& sum) {
    std::vector<Piece> pieces;
    std::vector<const Operation*> parts;
    int64_t axis = -1;
    const TensorType& type = sum.results[0]->type;
    if (!type.ranked || !collect(sum, type, axis, pieces, parts)) return;
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& a, const Piece& b) { return a.start < b.start; });
    int64_t covered = 0;
    for (const Piece& piece : pieces) {
      if (piece.start != covered) return;
      covered = piece.end;
    }
    if (type.shape[static_cast<size_t>(axis)].constant() != covered) return;
    sum.op = &concat_;
    sum.operands.clear();
    for (const Piece& piece : pieces) sum.operands.push_back(piece.value);
    sum.attrs = default_attrs(concat_);
    sum.attrs[0] = axis;
    sum.attrs.list_sizes = {static_cast<int32_t>(pieces.size())};
    inside_.insert(parts.begin(), parts.end());
  }

  /// The pieces that a sum consists of, all along one axis; false if there is something else in it.
  bool collect(const Operation& sum, const TensorType& type, int64_t& axis,
               std::vector<Piece>& pieces, std::vector<const Operation*>& parts) {
    for (Value* v : sum.operands) {
      Operation* const producer = v->producer;
      if (v->constant || !producer || uses_[v] != 1 || !same_type(v->type, type)) return false;
      if (producer->op == &add_) {
        parts.push_back(producer);
        if (!collect(*producer, type, axis, pieces, parts)) return false;
      } else if (producer->op != &scatter_ || !add_piece(*producer, axis, pieces)) {
        return false;
      }
    }
    return true;
  }

  static bool add_piece(const Operation& scatter, int64_t& axis, std::vector<Piece>& pieces) {
    const StridedSliceScatterAttrs attrs(scatter.attrs);
    if (attrs.axes.size() != 1 || attrs.starts.size() != 1 || attrs.ends.size() != 1) return false;
    if (attrs.strides != std::vector<int64_t>{1}) return false;
    const Shape& shape = scatter.results[0]->type.shape;
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t along = attrs.axes[0] < 0 ? attrs.axes[0] + rank : attrs.axes[0];
    const auto start = attrs.starts[0].constant(), end = attrs.ends[0].constant();
    if (along < 0 || along >= rank || (axis >= 0 && axis != along)) return false;
    if (!start || !end || *start < 0 || *end <= *start) return false;
    Shape wanted = shape;
    wanted[static_cast<size_t>(along)] = Dim(*end - *start);
    Value* const value = scatter.operands[1];
    if (!is_zero(*scatter.operands[0]) || !value->type.ranked ||
        value->type.dtype != scatter.results[0]->type.dtype ||
        !same_shape(value->type.shape, wanted))
      return false;
    axis = along;
    pieces.push_back({*start, *end, value});
    return true;
  }

  static bool is_zero(const Value& v) {
    if (v.constant) {
      for (int64_t i = 0; i < v.constant->size(); ++i)
        if (v.constant->number(i) != 0) return false;
      return true;
    }
    static const Op& full = get_op("full");
    if (!v.producer || v.producer->op != &full) return false;
    const AttrValue& value = v.producer->attrs[static_cast<size_t>(full.attr_index("fill_value"))];
    return (value.is_int() || value.is_float()) && value.as_double() == 0;
  }

  ir::Function& function_;
  const Op& add_ = get_op("add");
  const Op& concat_ = get_op("concat");
  const Op& scatter_ = get_op("strided_slice_scatter");
  std::unordered_map<const Value*, int> uses_;
  std::unordered_set<const Operation*> inside_;  ///< sums that are part of a concatenation
};

}  // namespace

void join_slices(ir::Function& function) { SliceJoiner(function).run(); }

}  // namespace paddle::passes
