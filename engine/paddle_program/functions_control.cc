// Functions of the table: control flow, lists of values, and operations that show or check values
// while a program runs. While tracing, a condition on data
// becomes an operation of the function where all values keep their types; a loop whose condition is
// known is unrolled. Otherwise the operations in the blocks are run by partitions.

#include <cctype>

#include "base/limits.h"
#include "onnx/graph/evaluator.h"
#include "ops/generated/creation.h"
#include "ops/generated/debug.h"
#include "ops/generated/shape.h"
#include "paddle_program/program_call.h"
#include "tensor/interpreter.h"

namespace paddle::paddle_program {
namespace {

constexpr int64_t kMaxUnrolled = 256;      // iterations of a loop while tracing
constexpr int64_t kMaxElements = 1 << 18;  // of a list

bool is_traced() { return current_interpreter().traces(); }

bool truth(const ProgramCall& c, const Value& condition) {
  if (!condition.is_concrete())
    throw DataDependentError(ErrorCode::kModel, "the condition depends on the data");
  const Array array = condition.tensor().array();
  c.check(array.size() == 1, "the condition must be one value");
  return array.number(0) != 0;
}

Tensors as_tensors(const Values& values) {
  Tensors out;
  for (const Value& v : values) {
    if (!v.is_tensor()) throw DataDependentError(ErrorCode::kModel, "a block gives " + v.text());
    out.push_back(v.tensor());
  }
  return out;
}

Tensor truth_value(const Tensor& condition) {
  return ops::cast(ops::reshape(condition, Shape()), DType::kBool);
}

/// Rejects results of which a size is not known, so that partitions are used.
Values with_known_sizes(const Tensors& tensors) {
  Values out;
  for (const Tensor& t : tensors) {
    for (const Dim& d : t.shape())
      if (d.is_unknown())
        throw DataDependentError(ErrorCode::kModel, "the branches differ in shape");
    out.emplace_back(t);
  }
  return out;
}

Values conditional(ProgramCall& c) {
  NodeCall& node = c.node();
  const auto& then_graph = node.graph_attr("then");
  const auto& else_graph = node.graph_attr("else");
  const auto run = [&](const formats::onnx::Graph& graph) {
    return node.evaluator().run(graph, {}, node.scope());
  };
  const Value& condition = c.value("condition");
  if (condition.is_concrete()) return run(truth(c, condition) ? then_graph : else_graph);
  const auto code = [&](const formats::onnx::Graph& graph) {
    return [&run, &graph](const Tensors&) { return as_tensors(run(graph)); };
  };
  try {
    return with_known_sizes(current_interpreter().branch(truth_value(condition.tensor()),
                                                         code(then_graph), code(else_graph)));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage) throw;
    throw DataDependentError(ErrorCode::kModel, e.message());
  }
}

/// The loop as an operation: the condition is the first carried value.
Values traced_loop(ProgramCall& c, const formats::onnx::Graph& body) {
  NodeCall& node = c.node();
  Tensors carried = {truth_value(c.tensor("condition"))};
  for (const Tensor& t : as_tensors(c.values("carried"))) carried.push_back(t);
  const auto condition = [](const Tensors& state) { return Tensors{state[0]}; };
  const auto step = [&](const Tensors& state) {
    Values arguments(state.begin() + 1, state.end());
    Tensors out = as_tensors(node.evaluator().run(body, arguments, node.scope()));
    out[0] = truth_value(out[0]);
    return out;
  };
  try {
    Values out = with_known_sizes(current_interpreter().loop(condition, step, carried, -1));
    out.erase(out.begin());
    return out;
  } catch (const Error& e) {
    // A carried value that changes its type.
    if (e.code() != ErrorCode::kUsage) throw;
    throw DataDependentError(ErrorCode::kModel, e.message());
  }
}

Values loop(ProgramCall& c) {
  NodeCall& node = c.node();
  const auto& body = node.graph_attr("body");
  Value condition = c.value("condition");
  Values state = c.values("carried");
  c.check(body.inputs.size() == state.size() && body.outputs.size() == state.size() + 1,
          "the block has ", body.inputs.size(), " arguments and ", body.outputs.size(),
          " results for ", state.size(), " carried values");
  if (is_traced() && !condition.is_concrete()) return traced_loop(c, body);
  for (int64_t turn = 0; truth(c, condition); ++turn) {
    if (is_traced() && turn >= kMaxUnrolled)
      throw DataDependentError(ErrorCode::kModel, "the loop has too many iterations to unroll");
    node.evaluator().count_iteration();
    Values out = node.evaluator().run(body, state, node.scope());
    condition = std::move(out[0]);
    state.assign(std::make_move_iterator(out.begin() + 1), std::make_move_iterator(out.end()));
    // A condition on data: the remaining turns are an operation.
    if (is_traced() && !condition.is_concrete())
      throw DataDependentError(ErrorCode::kModel, "the condition depends on the data");
  }
  return state;
}

// --- lists ---

Values create_array(ProgramCall&) { return {Value::sequence({})}; }

int64_t element_index(const ProgramCall& c) {
  const int64_t index = c.integer("i");
  c.check(index >= 0 && index < kMaxElements, "the index ", index, " is out of range");
  return index;
}

Values array_write(ProgramCall& c) {
  Value::List elements;
  if (c.has("array")) elements = c.value("array").elements();
  const auto index = static_cast<size_t>(element_index(c));
  if (index >= elements.size()) elements.resize(index + 1);
  elements[index] = c.value("x");
  return {Value::sequence(std::move(elements))};
}

Values array_read(ProgramCall& c) {
  const Value::List& elements = c.value("array").elements();
  const int64_t index = element_index(c);
  c.check(index < static_cast<int64_t>(elements.size()) &&
              !elements[static_cast<size_t>(index)].is_none(),
          "the list has no element ", index);
  return {elements[static_cast<size_t>(index)]};
}

Values array_length(ProgramCall& c) {
  const auto count = static_cast<int64_t>(c.value("array").elements().size());
  return {Tensor(Array::from<int64_t>({count}, {1}))};
}

/// The elements joined, and their sizes along the axis, int32.
Values array_to_tensor(ProgramCall& c) {
  const Value::List& elements = c.value("array").elements();
  c.check(!elements.empty(), "the list is empty");
  const Tensors parts = as_tensors(elements);
  const int64_t axis = c.integer("axis");
  const bool stacks = c.flag("use_stack");
  std::vector<int32_t> sizes;
  for (const Tensor& part : parts)
    sizes.push_back(stacks ? 1
                           : static_cast<int32_t>(
                                 onnx::constant_dim(part, axis < 0 ? axis + part.ndim() : axis)));
  const Tensor joined = stacks ? ops::stack(parts, axis) : ops::concat(parts, axis);
  return {joined, Tensor(Array::from<int32_t>(sizes, {static_cast<int64_t>(sizes.size())}))};
}

// --- values that are shown or checked ---

Values print(ProgramCall& c) {
  const auto& node = c.node().node();
  std::string phase = c.text("print_phase");
  for (char& letter : phase)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return {ops::print(c.tensor("input"), c.integer("first_n"), c.text("message"),
                     c.integer("summarize"), c.flag("print_tensor_name"),
                     c.flag("print_tensor_type"), c.flag("print_tensor_shape"),
                     c.flag("print_tensor_layout"), c.flag("print_tensor_lod"), phase,
                     node.source.empty() ? node.name : node.source)};
}

Values assert_true(ProgramCall& c) {
  const auto& node = c.node().node();
  const std::string& place = node.source.empty() ? node.name : node.source;
  ops::assert_true(c.tensor("condition"), str("the condition does not hold (", place, ")"));
  return {};
}

}  // namespace

ProgramFunctions program_control_functions() {
  return {
      {"if", conditional},
      {"while", loop},
      {"create_array", create_array},
      {"array_write", array_write},
      {"array_read", array_read},
      {"array_length", array_length},
      {"array_to_tensor", array_to_tensor},
      {"print", print},
      {"assert_true", assert_true},
  };
}

}  // namespace paddle::paddle_program
