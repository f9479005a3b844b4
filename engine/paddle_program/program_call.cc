#include "paddle_program/program_call.h"

#include <algorithm>
#include <cmath>

#include "onnx/graph/evaluator.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"
#include "paddle_program/program_sizes.h"

namespace paddle::paddle_program {

using formats::PaddleAttribute;
using formats::onnx::Attribute;
using formats::onnx::AttributeKind;

// Integers are kept as such, and real numbers as float64, which an attribute of ONNX has not.
Attribute argument_attribute(const std::string& name, const PaddleAttribute& value) {
  Attribute out;
  out.name = name;
  if (!value.texts.empty()) {
    out.kind = AttributeKind::kStrings;
    out.strings = value.texts;
  } else if (!value.reals.empty()) {
    out.kind = AttributeKind::kTensor;
    formats::onnx::TensorData data;
    data.dtype = DType::kF64;
    data.array = Array::from<double>(value.reals, {static_cast<int64_t>(value.reals.size())});
    data.shape = data.array.shape;
    out.tensors.push_back(std::move(data));
  } else {
    out.kind = AttributeKind::kInts;
    out.ints = value.integers;
  }
  return out;
}

PaddleAttribute argument_of(const Attribute& attribute) {
  PaddleAttribute out;
  out.texts = attribute.strings;
  out.integers = attribute.ints;
  if (!attribute.tensors.empty()) {
    const Array& array = attribute.tensors[0].array;
    for (int64_t i = 0; i < array.size(); ++i) out.reals.push_back(array.number(i));
  }
  return out;
}

ProgramCall::Form ProgramCall::form_of(const NodeCall& node) {
  Form out;
  out.rule = &program_rules().at(static_cast<size_t>(node.int_attr(kRule, 0)));
  out.operands = node.ints_attr(kOperands);
  for (const ProgramArgument& argument : out.rule->arguments)
    if (!argument.name.empty() && argument.value && !argument.is_fixed)
      out.attributes[argument.name] = *argument.value;
  for (const Attribute& each : node.node().attributes)
    if (each.name != kRule && each.name != kOperands && each.graphs.empty())
      out.attributes[each.name] = argument_of(each);
  return out;
}

ProgramCall::ProgramCall(NodeCall& node)
    : node_(node),
      form_(node.evaluator().prepared<Form>(node.node(), [&] { return form_of(node); })) {}

std::vector<size_t> ProgramCall::positions(std::string_view name) const {
  const int wanted = rule().argument_index(name);
  std::vector<size_t> out;
  for (size_t i = 0; i < form_->operands.size(); ++i)
    if (form_->operands[i] == wanted && node_.has_input(i)) out.push_back(i);
  return out;
}

const Value& ProgramCall::value(std::string_view name) const {
  const auto found = positions(name);
  if (found.empty()) reject("the operand '", name, "' is missing");
  return node_.value(found[0]);
}

Values ProgramCall::values(std::string_view name) const {
  Values out;
  for (const size_t i : positions(name)) out.push_back(node_.value(i));
  return out;
}

Tensors ProgramCall::list(std::string_view name) const {
  Tensors out;
  for (const size_t i : positions(name)) out.push_back(node_.tensor(i));
  return out;
}

const PaddleAttribute* ProgramCall::attribute(std::string_view name) const {
  const auto found = form_->attributes.find(name);
  return found == form_->attributes.end() ? nullptr : &found->second;
}

bool ProgramCall::is_given(std::string_view name) const {
  return has(name) || attribute(name) != nullptr;
}

Shape ProgramCall::dims(std::string_view name) const {
  const auto operands = positions(name);
  Shape out;
  if (operands.empty()) {
    const PaddleAttribute* given = attribute(name);
    if (!given) reject("'", name, "' is missing");
    check(given->reals.empty() && given->texts.empty(), "'", name, "' must be integers");
    return to_shape(given->integers);
  }
  for (const size_t i : operands) {
    const Value& v = node_.value(i);
    if (const auto known = v.dims()) {
      out.insert(out.end(), known->begin(), known->end());
      continue;
    }
    if (!v.is_concrete())
      throw DataDependentError(ErrorCode::kModel, str("'", name, "' depends on the data"));
    const Array a = v.tensor().array().contiguous();
    check(is_integer(a.dtype) || is_float(a.dtype), "'", name, "' must be integers");
    check(a.size() <= 4096, "'", name, "' has ", a.size(), " elements");
    for (int64_t k = 0; k < a.size(); ++k)
      out.push_back(Dim(is_integer(a.dtype) ? a.integer(k) : static_cast<int64_t>(a.number(k))));
  }
  return out;
}

std::vector<int64_t> ProgramCall::ints(std::string_view name) const {
  std::vector<int64_t> out;
  for (const Dim& d : dims(name)) {
    if (!d.is_constant())
      throw DataDependentError(ErrorCode::kModel, str("'", name, "' is not known: ", d));
    out.push_back(d.value());
  }
  return out;
}

int64_t ProgramCall::integer(std::string_view name) const {
  if (!has(name))
    if (const PaddleAttribute* given = attribute(name); given && given->reals.size() == 1)
      return static_cast<int64_t>(given->reals[0]);
  const auto all = ints(name);
  check(all.size() == 1, "'", name, "' must be one number, not ", all.size());
  return all[0];
}

std::vector<double> ProgramCall::reals(std::string_view name) const {
  std::vector<double> out;
  const auto operands = positions(name);
  if (operands.empty()) {
    const PaddleAttribute* given = attribute(name);
    if (!given) reject("'", name, "' is missing");
    // A number may be a text: tolerances of isclose are.
    for (const std::string& text : given->texts) out.push_back(std::strtod(text.c_str(), nullptr));
    for (const int64_t each : given->integers) out.push_back(static_cast<double>(each));
    out.insert(out.end(), given->reals.begin(), given->reals.end());
    return out;
  }
  for (const size_t i : operands) {
    if (!node_.value(i).is_concrete())
      throw DataDependentError(ErrorCode::kModel, str("'", name, "' depends on the data"));
    const Array a = node_.tensor(i).array().contiguous();
    check(a.size() <= 4096, "'", name, "' has ", a.size(), " elements");
    for (int64_t k = 0; k < a.size(); ++k) out.push_back(a.number(k));
  }
  return out;
}

double ProgramCall::real(std::string_view name) const {
  const auto all = reals(name);
  check(all.size() == 1, "'", name, "' must be one number, not ", all.size());
  return all[0];
}

std::string ProgramCall::text(std::string_view name) const {
  const PaddleAttribute* given = attribute(name);
  return given && !given->texts.empty() ? given->texts[0] : "";
}

std::optional<DType> ProgramCall::dtype(std::string_view name) const {
  const PaddleAttribute* given = attribute(name);
  if (!given) return std::nullopt;
  if (!given->integers.empty()) {
    const int64_t number = given->integers[0];
    const auto found = formats::paddle_dtype(number);
    check(found || number < 0, "the type ", number, " is not supported");
    return found;
  }
  if (given->texts.empty()) return std::nullopt;
  const std::string& text = given->texts[0];
  if (text.empty() || text.find("ndefined") == 1) return std::nullopt;
  return parse_dtype(text);
}

Array ProgramCall::numbers(std::string_view name, DType dtype) const {
  const PaddleAttribute* given = attribute(name);
  if (!given) return Array::empty(dtype, {0});
  check(given->reals.empty() || given->integers.empty(), "'", name, "' has numbers of two kinds");
  if (given->reals.empty())
    return Array::from<int64_t>(given->integers, {static_cast<int64_t>(given->integers.size())})
        .cast(dtype);
  return Array::from<double>(given->reals, {static_cast<int64_t>(given->reals.size())}).cast(dtype);
}

Tensor ProgramCall::number(std::string_view name, DType dtype) const {
  if (has(name)) return ops::reshape(ops::cast(tensor(name), dtype), Shape());
  Array all = numbers(name, dtype);
  check(all.size() == 1, "'", name, "' must be one number");
  all.shape.clear();
  all.strides.clear();
  return Tensor(all);
}

namespace {

AttrValue list_of(const ProgramCall& call, const std::string& name, AttrType type) {
  if (type == AttrType::kFloats) return call.reals(name);
  if (type == AttrType::kStrings) return call.attribute(name)->texts;
  AttrValue::List out;
  for (const Dim& d : call.dims(name)) out.emplace_back(d);
  return out;
}

/// The value of an attribute of the operation.
AttrValue attribute_value(const ProgramCall& call, const ProgramArgument& argument,
                          const AttrDef& def) {
  const std::string& name = argument.name;
  const PaddleAttribute* given = call.attribute(name);
  const bool is_empty = !call.has(name) && given && given->integers.empty() &&
                        given->reals.empty() && given->texts.empty();
  if (is_empty && def.optional) return {};
  switch (def.type) {
    case AttrType::kBool:
      return call.flag(name);
    case AttrType::kDType:
      return AttrValue(call.dtype(name));
    case AttrType::kInt:
    case AttrType::kDim: {
      const Shape all = call.dims(name);
      call.check(all.size() == 1, "'", name, "' must be one number, not ", all.size());
      return all[0];
    }
    case AttrType::kFloat:
      return call.real(name);
    case AttrType::kNumber: {
      const bool whole = call.has(name) ? is_integer(call.value(name).dtype())
                                        : given && given->reals.empty() && given->texts.empty();
      return whole ? AttrValue(call.integer(name)) : AttrValue(call.real(name));
    }
    case AttrType::kString:
    case AttrType::kWord:
      return call.text(name);
    case AttrType::kAny:
      if (call.has(name)) return list_of(call, name, AttrType::kInts);
      if (given && !given->texts.empty()) return given->texts[0];
      if (given && !given->reals.empty()) return call.reals(name);
      if (given && given->integers.size() == 1) return given->integers[0];
      return list_of(call, name, AttrType::kInts);
    default:
      return list_of(call, name, def.type);
  }
}

/// Gives y axes of size 1 at its end, so that its first axis is the axis of x.
Tensor placed(const ProgramCall& call, const Tensor& x, const Tensor& y) {
  const int64_t axis = call.integer("@axis"), rest = x.ndim() - y.ndim();
  if (axis < 0 || axis >= rest) return y;
  std::vector<int64_t> axes;
  for (int64_t i = y.ndim(); i < x.ndim() - axis; ++i) axes.push_back(i);
  return ops::unsqueeze(y, axes);
}

Values run_operation(NodeCall& node) {
  ProgramCall call(node);
  if (auto known = known_sizes(call)) return {std::move(*known)};
  if (!call.rule().is_function) return call_operation(call);
  return find_program_function(call.rule().target)(call);
}

}  // namespace

Tensor placed_operand(const ProgramCall& call, std::string_view name) {
  const Tensor& given = call.tensor(name);
  if (name != "y" || call.rule().argument_index("@axis") < 0) return given;
  return placed(call, call.tensor("x"), given);
}

Values call_operation(ProgramCall& call) {
  const Op& op = get_op(call.rule().target);
  std::vector<std::pair<std::string, Argument>> arguments;
  for (const ProgramArgument& argument : call.rule().arguments) {
    const std::string& name = argument.name;
    if (name.empty() || name[0] == '@' || !call.is_given(name)) continue;
    if (const int operand = op.operand_index(name); operand >= 0) {
      if (!call.has(name)) continue;
      if (op.operands()[static_cast<size_t>(operand)].kind == OperandKind::kList)
        arguments.emplace_back(name, call.list(name));
      else
        arguments.emplace_back(name, placed_operand(call, name));
      continue;
    }
    const AttrDef& def = op.attrs()[static_cast<size_t>(op.attr_index(name))];
    // Axes 0 and -1 of a value without axes stand for none.
    if (op.has(kReduction) && name == "axis" && call.tensor("x").ndim() == 0) continue;
    if (call.rule().argument_index("@all") >= 0 && name == "axis" && call.flag("@all")) continue;
    AttrValue value = attribute_value(call, argument, def);
    if (value.is_none() && !def.optional) continue;
    arguments.emplace_back(name, std::move(value));
  }
  Bound bound = bind_arguments(op, {}, std::move(arguments));
  Values out;
  for (Tensor& result : call_visible(*bound.op, std::move(bound.operands), std::move(bound.attrs)))
    out.emplace_back(std::move(result));
  if (call.rule().argument_index("@dtype") >= 0)
    if (const auto dtype = call.dtype("@dtype")) out[0] = ops::cast(out[0].tensor(), *dtype);
  return out;
}

ProgramFunction find_program_function(std::string_view name) {
  static const auto* const kFunctions = [] {
    auto* out = new std::map<std::string_view, ProgramFunction>;
    for (const auto table :
         {program_math_functions, program_shape_functions, program_network_functions,
          program_control_functions, program_detection_functions, program_sequence_functions,
          program_fused_functions})
      for (const auto& [key, function] : table()) out->emplace(key, function);
    return out;
  }();
  const auto found = kFunctions->find(name);
  return found == kFunctions->end() ? nullptr : found->second;
}

onnx::OperatorTable program_operators() {
  static const auto* const kOperators = [] {
    auto* out = new std::vector<onnx::Operator>;
    for (const ProgramRule& rule : program_rules())
      for (const std::string& name : rule.names) out->push_back({name, 1, run_operation});
    return out;
  }();
  return *kOperators;
}

}  // namespace paddle::paddle_program
