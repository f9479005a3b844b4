#include "onnx/graph/node_call.h"

#include "onnx/graph/evaluator.h"

namespace paddle::onnx {

using formats::onnx::AttributeKind;

const Value& NodeCall::value(size_t i) const {
  if (!has_input(i)) reject("input ", i, " is missing");
  return inputs_[i];
}

Tensors NodeCall::tensors() const {
  Tensors out;
  for (size_t i = 0; i < inputs_.size(); ++i) out.push_back(tensor(i));
  return out;
}

Array NodeCall::constant_array(size_t i) const {
  const Value& v = value(i);
  if (!v.is_concrete())
    throw DataDependentError(ErrorCode::kModel,
                             str("the value of '", node_.inputs[i], "' depends on the data"));
  return v.tensor().array().contiguous();
}

Shape NodeCall::dims_operand(size_t i) const {
  constexpr size_t kMaxDims = 1024;
  const auto given = value(i).dims();
  const Shape dims = given ? *given : to_shape(constant_ints(i));
  check(dims.size() <= kMaxDims, "input ", i, " holds ", dims.size(),
        " sizes; tensors have at most ", kMaxDims, " axes");
  return dims;
}

std::vector<int64_t> NodeCall::constant_ints(size_t i) const {
  const Array a = constant_array(i);
  check(is_integer(a.dtype), "input ", i, " must be of an integer type, not ",
        paddle::text(a.dtype));
  check(a.size() <= int64_t{1} << 24, "input ", i, " has too many elements");
  std::vector<int64_t> out;
  for (int64_t k = 0; k < a.size(); ++k) out.push_back(a.integer(k));
  return out;
}

int64_t NodeCall::constant_int(size_t i) const {
  const auto all = constant_ints(i);
  check(all.size() == 1, "input ", i, " must have one element, not ", all.size());
  return all[0];
}

double NodeCall::constant_float(size_t i) const {
  const Array a = constant_array(i);
  check(a.size() == 1, "input ", i, " must have one element, not ", a.size());
  return a.number(0);
}

const NodeCall::Attribute* NodeCall::find(std::string_view name) const {
  const Attribute* a = node_.find(name);
  return a && !a->reference.empty() ? scope_.attribute(a->reference) : a;
}

int64_t NodeCall::int_attr(std::string_view name, int64_t default_value) const {
  const Attribute* a = find(name);
  if (!a) return default_value;
  check(a->kind == AttributeKind::kInt, "the attribute '", name, "' must be an integer");
  return a->i;
}

double NodeCall::float_attr(std::string_view name, double default_value) const {
  const Attribute* a = find(name);
  if (!a) return default_value;
  if (a->kind == AttributeKind::kInt) return static_cast<double>(a->i);
  check(a->kind == AttributeKind::kFloat, "the attribute '", name, "' must be a number");
  return static_cast<double>(a->f);
}

std::string NodeCall::string_attr(std::string_view name, const std::string& default_value) const {
  const Attribute* a = find(name);
  if (!a) return default_value;
  check(a->kind == AttributeKind::kString, "the attribute '", name, "' must be a string");
  return a->s;
}

std::vector<int64_t> NodeCall::ints_attr(std::string_view name,
                                         std::vector<int64_t> default_value) const {
  const Attribute* a = find(name);
  if (!a) return default_value;
  if (a->kind == AttributeKind::kInt) return {a->i};
  check(a->kind == AttributeKind::kInts, "the attribute '", name, "' must be a list of integers");
  return a->ints;
}

std::vector<double> NodeCall::floats_attr(std::string_view name,
                                          std::vector<double> default_value) const {
  const Attribute* a = find(name);
  if (!a) return default_value;
  check(a->kind == AttributeKind::kFloats, "the attribute '", name, "' must be a list of numbers");
  return {a->floats.begin(), a->floats.end()};
}

std::vector<std::string> NodeCall::strings_attr(std::string_view name) const {
  const Attribute* a = find(name);
  return a ? a->strings : std::vector<std::string>{};
}

const formats::onnx::Graph& NodeCall::graph_attr(std::string_view name) const {
  const Attribute* a = find(name);
  check(a && !a->graphs.empty(), "the attribute '", name, "' must be a graph");
  return *a->graphs[0];
}

DType NodeCall::dtype_attr(std::string_view name, DType default_value) const {
  const Attribute* a = find(name);
  if (!a || a->i == 0) return default_value;
  const auto dtype = formats::onnx::dtype_of_number(a->i);
  check(dtype.has_value(), "the element type ", a->i, " is not supported");
  return *dtype;
}

std::optional<std::vector<int64_t>> NodeCall::axes(size_t i, std::string_view name) const {
  if (has_input(i)) return constant_ints(i);
  if (has_attribute(name)) return ints_attr(name);
  return std::nullopt;
}

int64_t NodeCall::axis(int64_t axis, int64_t rank) const {
  check(axis >= -rank && axis < rank, "axis ", axis, " is out of range for rank ", rank);
  return axis < 0 ? axis + rank : axis;
}

void NodeCall::check_same_dtype(std::initializer_list<size_t> inputs) const {
  std::optional<size_t> first;
  for (const size_t i : inputs) {
    if (!has_input(i)) continue;
    if (first)
      check(value(i).dtype() == value(*first).dtype(), "inputs ", *first, " and ", i, " are ",
            paddle::text(value(*first).dtype()), " and ", paddle::text(value(i).dtype()),
            ", expected the same type");
    else
      first = i;
  }
}

}  // namespace paddle::onnx
