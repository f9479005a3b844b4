// Sequences and optionals.

#include "base/limits.h"
#include "onnx/ops/helpers.h"
#include "ops/generated/shape.h"
#include "tensor/interpreter.h"

namespace paddle::onnx {
namespace {

constexpr size_t kMaxTraced = 1024;  // elements that a traced split may have

/// Elements are tensors or strings: nested sequences could grow exponentially.
const Value& element(const NodeCall& c, size_t i) {
  const Value& v = c.value(i);
  c.check(v.is_tensor() || v.kind() == Value::Kind::kStrings, "not allowed in a sequence: ", v);
  return v;
}

/// Checks that the sequence fits into memory.
Value checked_sequence(const NodeCall& c, Value::List list) {
  int64_t bytes = 0;
  for (const Value& v : list) bytes += memory_bytes(v);
  c.check(bytes <= limits().memory / 2, "the sequence takes more than half of the memory");
  return Value::sequence(std::move(list));
}

Values construct(NodeCall& c) {
  Value::List list;
  for (size_t i = 0; i < c.input_count(); ++i) list.push_back(element(c, i));
  return {Value::sequence(std::move(list))};
}

Values empty(NodeCall&) { return {Value::sequence({})}; }

/// Normalizes a position; `end` is allowed for insertion.
size_t position_operand(const NodeCall& c, size_t i, size_t count, bool end) {
  const auto n = static_cast<int64_t>(count);
  const int64_t at = c.constant_int(i), from = at < 0 ? at + n : at;
  c.check(from >= 0 && from < n + (end ? 1 : 0), "position ", at,
          " is out of range for a sequence of ", n, " values");
  return static_cast<size_t>(from);
}

Values at(NodeCall& c) {
  const auto& list = c.value(0).elements();
  return {list[position_operand(c, 1, list.size(), false)]};
}

Values insert(NodeCall& c) {
  Value::List list = c.value(0).elements();
  const size_t where = c.has_input(2) ? position_operand(c, 2, list.size(), true) : list.size();
  list.insert(list.begin() + static_cast<int64_t>(where), element(c, 1));
  return {checked_sequence(c, std::move(list))};
}

Values erase(NodeCall& c) {
  Value::List list = c.value(0).elements();
  c.check(!list.empty(), "the sequence is empty");
  const size_t where =
      c.has_input(1) ? position_operand(c, 1, list.size(), false) : list.size() - 1;
  list.erase(list.begin() + static_cast<int64_t>(where));
  return {Value::sequence(std::move(list))};
}

Values length(NodeCall& c) {
  return {int_scalar(static_cast<int64_t>(c.value(0).elements().size()))};
}

Values concat(NodeCall& c) {
  Tensors parts;
  for (const Value& v : c.value(0).elements()) parts.push_back(v.tensor());
  c.check(!parts.empty(), "the sequence is empty");
  const int64_t axis = c.int_attr("axis", 0);
  if (c.bool_attr("new_axis", false)) return {ops::stack(parts, axis)};
  return {ops::concat(parts, c.axis(axis, parts[0].ndim()))};
}

/// Chunks of the given sizes (a scalar: equal chunks, the last one smaller), or single slices
/// without the axis unless `keepdims`. A scalar 1 also drops the axis, as exporters of `unbind`
/// expect.
Values split(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.axis(c.int_attr("axis", 0), x.ndim()), size = constant_dim(x, axis);
  std::vector<int64_t> sizes;
  const bool single = !c.has_input(1) || (c.tensor(1).ndim() == 0 && c.constant_int(1) == 1);
  if (single) {
    c.check(size <= 1 << 16, "cannot split into ", size, " pieces");
    sizes.assign(static_cast<size_t>(size), 1);
  } else if (c.tensor(1).ndim() == 0) {
    const int64_t each = c.constant_int(1);
    c.check(each > 0, "the size of a piece must be positive");
    c.check(size / each <= 1 << 16, "cannot split into ", size / each, " pieces");
    for (int64_t left = size; left > 0; left -= each) sizes.push_back(std::min(each, left));
  } else {
    sizes = c.constant_ints(1);
  }
  if (sizes.size() > kMaxTraced && current_interpreter().traces())
    throw DataDependentError(ErrorCode::kModel, str("it returns ", sizes.size(), " pieces"));
  Value::List list;
  int64_t from = 0;
  for (const int64_t s : sizes) {
    Tensor piece = slice_axis(x, axis, from, from + s);
    if (single && !c.bool_attr("keepdims", true))
      piece = ops::squeeze(piece, std::vector<int64_t>{axis});
    list.emplace_back(piece);
    from += s;
  }
  c.check(from == size, "the pieces do not add up to ", size);
  return {Value::sequence(std::move(list))};
}

Values optional(NodeCall& c) {
  return {c.has_input(0) ? Value::optional(c.value(0)) : Value::optional(std::nullopt)};
}

Values has_element(NodeCall& c) {
  const bool there = c.has_input(0) && (c.value(0).kind() != Value::Kind::kOptional ||
                                        !c.value(0).elements().empty());
  return {Tensor(Array::scalar(there))};
}

Values get_element(NodeCall& c) {
  const Value& v = c.value(0);
  if (v.kind() != Value::Kind::kOptional) return {v};
  c.check(!v.elements().empty(), "the optional is empty");
  return {v.elements()[0]};
}

}  // namespace

OperatorTable sequence_operators() {
  static constexpr Operator operators[] = {
      {"SequenceConstruct", 1, construct},
      {"SequenceEmpty", 1, empty},
      {"SequenceAt", 1, at},
      {"SequenceInsert", 1, insert},
      {"SequenceErase", 1, erase},
      {"SequenceLength", 1, length},
      {"ConcatFromSequence", 1, concat},
      {"SplitToSequence", 1, split},
      {"Optional", 1, optional},
      {"OptionalHasElement", 1, has_element},
      {"OptionalGetElement", 1, get_element},
  };
  return operators;
}

}  // namespace paddle::onnx
