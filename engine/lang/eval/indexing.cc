// Indexing of lists, text and maps; tensors are in tensor_index.cc.
#include "lang/eval/evaluation.h"
#include "lang/eval/tensor_index.h"
#include "lang/layers/initializer_words.h"

namespace paddle::lang {
namespace {

int64_t list_index(const Value& value, int64_t size) {
  if (!value.is_integer())
    fail(ErrorCode::kConfig, "a list is indexed by integers, found ", value.describe());
  const int64_t i = value.integer() < 0 ? value.integer() + size : value.integer();
  if (i < 0 || i >= size)
    fail(ErrorCode::kConfig, "index ", value.integer(), " of a list of ", size);
  return i;
}

/// Python's slice of `size` items as (start, count, step).
struct Range {
  int64_t start, count, step;
};

Range list_range(const Value& start, const Value& stop, const Value& step, int64_t size) {
  const auto number = [](const Value& value, int64_t fallback) {
    if (value.is_none()) return fallback;
    if (!value.is_integer())
      fail(ErrorCode::kConfig, "a slice takes integers, found ", value.describe());
    return value.integer();
  };
  const int64_t stride = std::max(number(step, 1), -INT64_MAX);
  if (stride == 0) fail(ErrorCode::kConfig, "a slice with step 0");
  const auto clamp = [&](int64_t i, int64_t low, int64_t high) {
    if (i < 0) i += size;
    return std::min(std::max(i, low), high);
  };
  const bool down = stride < 0;
  const int64_t first = start.is_none()
                            ? (down ? size - 1 : 0)
                            : clamp(number(start, 0), down ? -1 : 0, down ? size - 1 : size);
  const int64_t last = stop.is_none()
                           ? (down ? -1 : size)
                           : clamp(number(stop, 0), down ? -1 : 0, down ? size - 1 : size);
  int64_t count = 0;
  if (!down && last > first) count = (last - first - 1) / stride + 1;
  if (down && last < first) count = (first - last - 1) / -stride + 1;
  return {first, count, stride};
}

}  // namespace

Value Evaluation::elements_of(const Tensor& x, const SourcePosition& where) {
  if (x.ndim() == 0) reject(where, "a loop over a 0-D tensor");
  const Dim size = x.dim(0);
  if (!size.is_constant())
    reject(where, str("a loop over a tensor of '", size.text(),
                      "' elements, which are not known while tracing: loop over range(static(",
                      size.text(), ")) and index it, or use 'while'"));
  if (size.value() == 0) return Value::list({});
  return operations_.op("unbind", {x, Value(int64_t{0})}, where);
}

Value Evaluation::index(const Value& base, const Expr& expr, Frame& frame) {
  if (base.is_tensor()) {
    return read_index(*this, base.tensor(), expr, frame);
  }
  const auto* text = base.get<std::string>();
  if (!base.items() && !text && !base.is<Value::Map>()) {
    reject(expr.where, str(base.describe(), " cannot be indexed"));
  }
  if (expr.children.size() != 2) reject(expr.where, "a list takes one index");
  const Expr& child = *expr.children[1];
  if (const auto* map = base.get<Value::Map>()) {
    const Value key = evaluate(child, frame);
    for (const auto& [name, value] : *map->entries) {
      if (key.is<std::string>() && name == *key.get<std::string>()) return value;
    }
    reject(child.where, str("the map has no ", key.describe()));
  }
  const auto size = static_cast<int64_t>(text ? text->size() : base.items()->size());
  if (child.kind == ExprKind::kSlice) {
    const auto part = [&](size_t k) {
      return child.children[k] ? evaluate(*child.children[k], frame) : Value();
    };
    const Value start = part(0), stop = part(1), step = part(2);
    const Range range =
        with_location_scope(child.where, [&] { return list_range(start, stop, step, size); });
    ValueList out;
    std::string characters;
    for (int64_t k = 0; k < range.count; ++k) {
      const auto at = static_cast<size_t>(range.start + k * range.step);
      if (text) {
        characters += (*text)[at];
      } else {
        out.push_back((*base.items())[at]);
      }
    }
    if (text) return Value(characters);
    return base.is<Value::List>() ? Value::list(std::move(out)) : Value::tuple(std::move(out));
  }
  if (child.kind == ExprKind::kEllipsis) reject(child.where, "'...' in the index of a list");
  const Value at = evaluate(child, frame);
  const auto i =
      static_cast<size_t>(with_location_scope(child.where, [&] { return list_index(at, size); }));
  return text ? Value(std::string(1, (*text)[i])) : (*base.items())[i];
}

void Evaluation::assign_index(const Expr& target, const Value& value, Frame& frame) {
  const Value base = evaluate(*target.children[0], frame);
  if (base.is_tensor()) {
    write_index(*this, base.tensor(), target, value, frame);
    return;
  }
  ValueList* items = base.mutable_items();
  if (!items) reject(target.where, str(base.describe(), " cannot be changed"));
  if (target.children.size() != 2 || target.children[1]->kind == ExprKind::kSlice ||
      target.children[1]->kind == ExprKind::kEllipsis) {
    reject(target.where, "a list's items are assigned one by one");
  }
  const Value at = evaluate(*target.children[1], frame);
  const int64_t i = with_location_scope(target.children[1]->where, [&] {
    return list_index(at, static_cast<int64_t>(items->size()));
  });
  if (list_holds(value, items)) reject(target.where, "a list cannot hold itself");
  (*items)[static_cast<size_t>(i)] = value;
}

}  // namespace paddle::lang
