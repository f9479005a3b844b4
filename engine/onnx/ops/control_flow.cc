// If, Loop, Scan and SequenceMap. Conditions and trip counts are known when the model runs node by
// node. While tracing, If becomes a branch of the function and short loops are unrolled.

#include <algorithm>
#include <cstdint>

#include "base/limits.h"
#include "onnx/graph/evaluator.h"
#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/shape.h"
#include "tensor/interpreter.h"

namespace paddle::onnx {
namespace {

constexpr int64_t kMaxUnrolled = 256;  // iterations of a loop while tracing

bool tracing() { return current_interpreter().traces(); }

bool truth(const NodeCall& c, const Value& v) {
  if (!v.is_concrete())
    throw DataDependentError(ErrorCode::kModel, "the condition depends on the data");
  const Array a = v.tensor().array();
  c.check(a.size() == 1, "the condition must be one value");
  return a.integer(0) != 0;
}

Values conditional(NodeCall& c) {
  const auto& then_graph = c.graph_attr("then_branch");
  const auto& else_graph = c.graph_attr("else_branch");
  const auto run = [&](const formats::onnx::Graph& g) {
    return c.evaluator().run(g, {}, c.scope());
  };
  if (c.value(0).is_concrete()) return run(truth(c, c.value(0)) ? then_graph : else_graph);
  const auto as_tensors = [&](const formats::onnx::Graph& g) {
    return [&run, &g](const Tensors&) {
      Tensors out;
      for (const Value& v : run(g)) {
        if (!v.is_tensor())
          throw DataDependentError(ErrorCode::kModel, "a branch returns " + v.text());
        out.push_back(v.tensor());
      }
      return out;
    };
  };
  Values out;
  try {
    for (const Tensor& t : current_interpreter().branch(
             ops::reshape(c.tensor(0), Shape()), as_tensors(then_graph), as_tensors(else_graph)))
      out.emplace_back(t);
  } catch (const Error& e) {
    // Branches of different ranks or types are only supported eagerly.
    if (e.code() != ErrorCode::kUsage) throw;
    throw DataDependentError(ErrorCode::kModel, e.message());
  }
  for (const Value& v : out)
    for (const Dim& d : v.shape())
      if (d.is_unknown())
        throw DataDependentError(ErrorCode::kModel, "the branches differ in shape");
  return out;
}

/// Collects scan outputs, as long as they fit into memory.
class ScanOutputs {
 public:
  explicit ScanOutputs(size_t count) : outputs_(count) {}
  void add(size_t i, const Value& value) {
    bytes_ += memory_bytes(value);
    if (bytes_ > limits().memory / 2)
      fail(ErrorCode::kModel,
           "the outputs of all loop iterations take more than half of the memory");
    outputs_[i].push_back(value);
  }
  size_t size() const { return outputs_.size(); }
  const Values& operator[](size_t i) const { return outputs_[i]; }

 private:
  std::vector<Values> outputs_;
  int64_t bytes_ = 0;
};

/// Stacks the outputs of all iterations along a new first axis.
Value stack_outputs(const Values& iterations, int64_t axis, bool reverse) {
  Tensors all;
  for (const Value& v : iterations) all.push_back(v.tensor());
  if (reverse) std::reverse(all.begin(), all.end());
  return ops::stack(all, axis);
}

/// With zero iterations, the output type is what the graph declares.
Value empty_stack(const formats::onnx::ValueInfo& declared) {
  Shape shape = {Dim(0)};
  if (declared.type.shape)
    for (const Dim& d : *declared.type.shape) shape.push_back(d.is_constant() ? d : Dim(0));
  return ops::full(shape, 0.0, declared.type.dtype.value_or(DType::kF32));
}

Values loop(NodeCall& c) {
  const auto& body = c.graph_attr("body");
  const int64_t limit = c.has_input(0) ? c.constant_int(0) : INT64_MAX;
  Value condition = c.has_input(1) ? c.value(1) : Value(Tensor(Array::scalar(true)));
  const size_t carried = c.input_count() > 2 ? c.input_count() - 2 : 0;
  c.check(body.outputs.size() >= 1 + carried && body.inputs.size() == 2 + carried, "the body has ",
          body.inputs.size(), " inputs and ", body.outputs.size(), " outputs for ", carried,
          " carried values");
  Values state;
  for (size_t i = 0; i < carried; ++i) state.push_back(c.value(i + 2));
  ScanOutputs scans(body.outputs.size() - 1 - carried);
  for (int64_t iteration = 0; iteration < limit && truth(c, condition); ++iteration) {
    if (tracing() && iteration >= kMaxUnrolled)
      throw DataDependentError(ErrorCode::kModel, "the loop has too many iterations to unroll");
    c.evaluator().count_iteration();
    Values arguments = {Value(Tensor(Array::scalar(iteration))), condition};
    arguments.insert(arguments.end(), state.begin(), state.end());
    const Values out = c.evaluator().run(body, arguments, c.scope());
    condition = out[0];
    for (size_t i = 0; i < carried; ++i) state[i] = out[i + 1];
    for (size_t i = 0; i < scans.size(); ++i) scans.add(i, out[1 + carried + i]);
  }
  for (size_t i = 0; i < scans.size(); ++i)
    state.push_back(scans[i].empty() ? empty_stack(body.outputs[1 + carried + i])
                                     : stack_outputs(scans[i], 0, false));
  return state;
}

struct ScanAxes {
  std::vector<int64_t> in_axes, in_directions, out_axes, out_directions;
};

/// One scan: states, then slices of the scanned inputs, iteration by iteration.
Values scan_once(const NodeCall& c, const Values& inputs, size_t states, const ScanAxes& axes) {
  const auto& body = c.graph_attr("body");
  const size_t scanned = inputs.size() - states;
  c.check(scanned > 0 && body.inputs.size() == inputs.size() && body.outputs.size() >= states,
          "the inputs and outputs of the body do not match the node");
  Values state(inputs.begin(), inputs.begin() + static_cast<int64_t>(states));
  const auto axis_of = [&](const std::vector<int64_t>& list, size_t i, int64_t rank) {
    return i < list.size() ? c.axis(list[i], rank) : 0;
  };
  const int64_t iterations = constant_dim(inputs[states].tensor(),
                                          axis_of(axes.in_axes, 0, inputs[states].tensor().ndim()));
  if (tracing() && iterations > kMaxUnrolled)
    throw DataDependentError(ErrorCode::kModel, "the scan has too many iterations to unroll");
  ScanOutputs out(body.outputs.size() - states);
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
    c.evaluator().count_iteration();
    Values arguments = state;
    for (size_t i = 0; i < scanned; ++i) {
      const Tensor& x = inputs[states + i].tensor();
      const int64_t axis = axis_of(axes.in_axes, i, x.ndim());
      const bool reverse = i < axes.in_directions.size() && axes.in_directions[i] == 1;
      c.check(constant_dim(x, axis) == iterations, "the scanned inputs differ in length");
      const int64_t at = reverse ? iterations - 1 - iteration : iteration;
      arguments.emplace_back(
          ops::squeeze(slice_axis(x, axis, at, at + 1), std::vector<int64_t>{axis}));
    }
    const Values results = c.evaluator().run(body, arguments, c.scope());
    for (size_t i = 0; i < states; ++i) state[i] = results[i];
    for (size_t i = 0; i < out.size(); ++i) out.add(i, results[states + i]);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].empty()) {
      state.push_back(empty_stack(body.outputs[states + i]));
      continue;
    }
    const bool reverse = i < axes.out_directions.size() && axes.out_directions[i] == 1;
    const int64_t rank = static_cast<int64_t>(out[i][0].shape().size()) + 1;
    state.push_back(stack_outputs(out[i], axis_of(axes.out_axes, i, rank), reverse));
  }
  return state;
}

Values scan(NodeCall& c) {
  const auto scanned = static_cast<size_t>(c.int_attr("num_scan_inputs", 1));
  c.check(scanned >= 1 && scanned <= c.input_count(), "num_scan_inputs is ", scanned);
  Values inputs;
  for (size_t i = 0; i < c.input_count(); ++i) inputs.push_back(c.value(i));
  return scan_once(c, inputs, inputs.size() - scanned,
                   {c.ints_attr("scan_input_axes"), c.ints_attr("scan_input_directions"),
                    c.ints_attr("scan_output_axes"), c.ints_attr("scan_output_directions")});
}

/// Pads the scanned part of a sequence with zeros.
Value pad_length(const Value& v, int64_t length) {
  const Tensor& x = v.tensor();
  Shape rest = x.shape();
  rest[0] = length - constant_dim(x, 0);
  return rest[0].equals(0).value_or(false)
             ? v
             : Value(ops::concat({x, ops::full(rest, 0.0, x.dtype())}, 0));
}

/// Opset 8 scans each sample of a batch separately; its first input holds the sequence lengths.
Values batched_scan(NodeCall& c) {
  const auto scanned = static_cast<size_t>(c.int_attr("num_scan_inputs", 1));
  c.check(scanned >= 1 && scanned + 1 <= c.input_count(), "num_scan_inputs is ", scanned);
  const int64_t batch = constant_dim(c.tensor(1), 0);
  const size_t states = c.input_count() - 1 - scanned;
  const int64_t whole = constant_dim(c.tensor(states + 1), 1);
  const auto lengths =
      c.has_input(0) ? c.constant_ints(0) : std::vector<int64_t>(static_cast<size_t>(batch), whole);
  c.check(static_cast<int64_t>(lengths.size()) == batch, "there are ", lengths.size(),
          " lengths for a batch of ", batch);
  std::vector<Values> samples;
  for (int64_t b = 0; b < batch; ++b) {
    Values inputs;
    const int64_t length = lengths[static_cast<size_t>(b)];
    c.check(length >= 0 && length <= whole, "the length ", length, " is not within ", whole);
    for (size_t i = 1; i < c.input_count(); ++i) {
      const Tensor one =
          ops::squeeze(slice_axis(c.tensor(i), 0, b, b + 1), std::vector<int64_t>{0});
      inputs.emplace_back(i > states && length != whole ? slice_axis(one, 0, 0, length) : one);
    }
    samples.push_back(scan_once(c, inputs, states, {{}, c.ints_attr("directions"), {}, {}}));
    for (size_t i = states; i < samples.back().size(); ++i)
      if (length != whole) samples.back()[i] = pad_length(samples.back()[i], whole);
  }
  c.check(!samples.empty(), "the batch is empty");
  Values out;
  for (size_t i = 0; i < samples[0].size(); ++i) {
    Values all;
    for (const Values& s : samples) all.push_back(s[i]);
    out.push_back(stack_outputs(all, 0, false));
  }
  return out;
}

/// Applies the body to each element of the first sequence, together with the elements of other
/// sequences at the same position and with whole tensors.
Values sequence_map(NodeCall& c) {
  const auto& body = c.graph_attr("body");
  const size_t count = c.value(0).elements().size();
  std::vector<Value::List> out(body.outputs.size());
  for (size_t i = 0; i < count; ++i) {
    Values arguments;
    for (size_t k = 0; k < c.input_count(); ++k) {
      const bool sequence = c.value(k).kind() == Value::Kind::kSequence;
      c.check(!sequence || c.value(k).elements().size() == count, "the sequences differ in length");
      arguments.push_back(sequence ? c.value(k).elements()[i] : c.value(k));
    }
    const Values results = c.evaluator().run(body, arguments, c.scope());
    for (size_t k = 0; k < out.size(); ++k) {
      c.check(results[k].is_tensor() || results[k].kind() == Value::Kind::kStrings,
              "not allowed in a sequence: ", results[k]);
      out[k].push_back(results[k]);
    }
  }
  Values all;
  for (auto& list : out) all.push_back(Value::sequence(std::move(list)));
  return all;
}

}  // namespace

OperatorTable control_flow_operators() {
  static constexpr Operator operators[] = {
      {"If", 1, conditional},           {"Loop", 1, loop},
      {"Scan", 1, batched_scan},        {"Scan", 9, scan},
      {"SequenceMap", 1, sequence_map},
  };
  return operators;
}

}  // namespace paddle::onnx
