#include "lang/eval/summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "lang/eval/shape_interpreter.h"
#include "ops/core/call.h"
#include "ops/core/cost.h"

namespace paddle::lang {
namespace {

/// Computes types and counts floating-point operations.
class CountingInterpreter final : public Interpreter {
 public:
  explicit CountingInterpreter(SymbolLookup lookup) : lookup_(std::move(lookup)) {}

  Tensors apply(const OpCall& call) override {
    flops += cost(call);
    return types_.apply(call);
  }
  Tensors branch(const Tensor& condition, const TensorFn& a, const TensorFn& b) override {
    return types_.branch(condition, a, b);
  }
  Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
               int64_t max_steps) override {
    return types_.loop(condition, body, carried, max_steps);
  }
  bool traces() const override { return true; }

  double size(const Dim& dim) const {
    return static_cast<double>(dim.evaluate(lookup_).value_or(1));
  }
  Dims sizes(const Shape& shape) const {
    Dims out;
    for (const Dim& dim : shape) out.push_back(dim.evaluate(lookup_).value_or(1));
    return out;
  }
  double size(const Shape& shape) const {
    double out = 1;
    for (const Dim& dim : shape) out *= size(dim);
    return out;
  }

  double flops = 0;

 private:
  /// Two for each multiply-add of products; one for each element of anything else that computes.
  double cost(const OpCall& call) const {
    if (call.results.empty()) return 0;
    const std::string_view name = call.op.name();
    const double out = size(call.results[0].shape);
    const auto operand = [&](size_t i) -> const Shape& { return call.operands.at(i).shape(); };
    if (name.starts_with("conv")) {
      const auto& weight = operand(1);
      const bool transposed = name.ends_with("transpose");
      if (weight.empty()) return 0;
      // Each element of the result (of x, when transposed) meets one filter's weights.
      return 2 * (transposed ? size(operand(0)) : out) * size(weight) / size(weight[0]);
    }
    if (name == "scaled_dot_product_attention" && operand(0).size() == 4) {
      const auto& q = operand(0);
      return 4 * size(q) * size(operand(1)[1]);
    }
    if (call.op.def->cost) {
      std::vector<Dims> operands, results;
      for (const Tensor& x : call.operands)
        operands.push_back(x.defined() ? sizes(x.shape()) : Dims{0});
      for (const TensorType& type : call.results) results.push_back(sizes(type.shape));
      return call_flops(call.op, call.attrs, operands, results);
    }
    if (call.op.has(kCreation) || call.op.has(kEffect) || call.op.def->view) return 0;
    if (call.op.has(kReduction)) return size(operand(0));
    return out;
  }

  ShapeInterpreter types_;
  SymbolLookup lookup_;
};

/// Slots by path, made as they are asked for.
class TypeStore final : public ParameterProvider {
 public:
  explicit TypeStore(const std::map<std::string, int64_t>& dims) : dims_(dims) {}
  Tensor parameter(const std::string& path, const Dims& shape, DType dtype,
                   const Initializer&) override {
    return slot(path, shape, dtype, parameters);
  }
  Tensor state(const std::string& path, const Dims& shape, DType dtype, const Initializer&,
               StateScope) override {
    return slot(path, shape, dtype, states);
  }
  void update(const std::string&, const Tensor&) override {}
  Tensor table_rows(const std::string& path, const Tensor& keys, int64_t width, DType dtype,
                    const Initializer&, const Tensor&) override {
    slot(path, {width}, dtype, tables);
    Shape shape = keys.shape();
    shape.push_back(width);
    return abstract_tensor({dtype, shape});
  }
  int64_t static_value(const Dim& dim) override {
    return dim
        .evaluate([&](const std::string& name) -> std::optional<int64_t> {
          const auto found = dims_.find(name);
          return found == dims_.end() ? 1 : found->second;
        })
        .value_or(1);
  }

  std::vector<std::pair<std::string, TensorType>> parameters, states, tables;

 private:
  using Slots = std::vector<std::pair<std::string, TensorType>>;
  Tensor slot(const std::string& path, const Dims& shape, DType dtype, Slots& slots) {
    TensorType type;
    type.dtype = dtype;
    type.shape = to_shape(shape);
    const auto [entry, fresh] = types_.emplace(path, type);
    if (fresh) slots.emplace_back(path, type);
    if (!same_type(entry->second, type)) {
      fail(ErrorCode::kConfig, "'", path, "' is ", entry->second, " elsewhere, here it is ", type);
    }
    return abstract_tensor(type);
  }
  const std::map<std::string, int64_t>& dims_;
  std::map<std::string, TensorType> types_;
};

int64_t count(const TensorType& type) {
  return element_count(std::span<const Dim>(type.shape)).constant().value_or(0);
}

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(static_cast<size_t>(i), 1, ',');
  }
  return digits;
}

std::string short_count(double value) {
  static constexpr const char* kUnits[] = {"", " K", " M", " G", " T", " P"};
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) value /= 1000, ++unit;
  return fmt::format("{:.{}f}{}", value, unit == 0 ? 0 : 2, kUnits[unit]);
}

/// Collects records into lines. A block's record comes after those of its body.
class Collector {
 public:
  Collector(Summary& summary, const CountingInterpreter& interpreter)
      : summary_(summary), interpreter_(interpreter) {}

  void add(const CallRecord& record) {
    SummaryLine line{record.path, record.callee, record.depth, record.is_block, "", 0,
                     0,           record.where};
    std::vector<std::string> types;
    for (const TensorType& type : record.outputs) types.push_back(type.text());
    line.output = join(types, ", ");
    line.flops = interpreter_.flops - counted_;
    counted_ = interpreter_.flops;
    for (const auto& [path, type] : record.parameters) {
      if (seen_.insert(path).second) line.parameters += count(type);
    }
    auto& lines = summary_.lines;
    if (!record.is_block) {
      lines.push_back(std::move(line));
      owner_.push_back(kNoOwner);
      return;
    }
    // The lines of the block are at the end of the list, deeper than the block and not in another
    // block of its depth.
    size_t first = lines.size();
    while (first > 0 && lines[first - 1].depth > record.depth && owner_[first - 1] > record.depth) {
      --first;
    }
    for (size_t i = first; i < lines.size(); ++i) {
      if (lines[i].depth != record.depth + 1) continue;
      line.parameters += lines[i].parameters;
      line.flops += lines[i].flops;
    }
    for (size_t i = first; i < lines.size(); ++i) owner_[i] = record.depth;
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(first), std::move(line));
    owner_.insert(owner_.begin() + static_cast<std::ptrdiff_t>(first), kNoOwner);
  }

 private:
  Summary& summary_;
  const CountingInterpreter& interpreter_;
  static constexpr int kNoOwner = 1 << 30;
  std::vector<int> owner_;  ///< of each line: depth of the outermost closed block around it
  std::set<std::string> seen_;
  double counted_ = 0;
};

}  // namespace

Summary summarize(const Program& program, const EntryPoint& entry,
                  const std::map<std::string, int64_t>& dims, bool training) {
  Summary summary;
  summary.name = program.name;
  summary.inputs = input_types(program, entry);
  for (const std::string& name : program.dims) {
    const auto given = dims.find(name);
    summary.dims[name] = given == dims.end() ? 1 : given->second;
  }
  CountingInterpreter interpreter([&](const std::string& name) -> std::optional<int64_t> {
    const auto found = summary.dims.find(name);
    return found == summary.dims.end() ? 1 : found->second;
  });
  const InterpreterScope scope(interpreter);
  const RandomScope random(Tensor(Array::zeros(DType::kU64, {2})));
  TypeStore store(summary.dims);
  Collector collector(summary, interpreter);
  EvaluationOptions options;
  options.training = training;
  options.store = &store;
  options.observer = [&](const CallRecord& record) { collector.add(record); };
  check_program(program, options);
  Tensors inputs;
  for (const auto& [name, type] : summary.inputs) inputs.push_back(abstract_tensor(type));
  for (const NamedTensor& out : run_entry(program, entry, inputs, options)) {
    summary.outputs.emplace_back(out.name, out.tensor.type());
  }
  summary.parameters = std::move(store.parameters);
  summary.states = std::move(store.states);
  summary.tables = std::move(store.tables);
  for (const auto& [path, type] : summary.parameters) summary.parameter_count += count(type);
  for (const auto& [path, type] : summary.states) summary.state_count += count(type);
  summary.flops = interpreter.flops;
  for (const auto& block : program.blocks) {
    if (!find_op(block->signature.name)) continue;
    summary.notes.push_back(str("the block '", block->signature.name, "' (",
                                block->signature.where.location().text(),
                                ") replaces the operation of that name in ", block->file));
  }
  return summary;
}

std::string text(const Summary& summary, int max_depth) {
  std::vector<std::vector<std::string>> rows = {{"layer", "output", "parameters", "FLOPs"}};
  for (const SummaryLine& line : summary.lines) {
    if (line.depth > max_depth) continue;
    std::string name = line.path.empty() ? line.callee : line.path;
    if (!line.path.empty() && line.path.find(line.callee) == std::string::npos) {
      name += " (" + line.callee + ")";
    }
    rows.push_back({std::string(2 * static_cast<size_t>(line.depth), ' ') + name, line.output,
                    line.parameters ? grouped(line.parameters) : "",
                    line.flops > 0 ? short_count(line.flops) : ""});
  }
  std::vector<size_t> widths(4);
  for (const auto& row : rows) {
    for (size_t i = 0; i < 4; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out = summary.name + "\n";
  for (const auto& [name, type] : summary.inputs)
    out += "input " + name + ": " + type.text() + "\n";
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < 4; ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      line += i < 2 ? row[i] + pad + "  " : pad + row[i] + "  ";
    }
    out += std::string(line.substr(0, line.find_last_not_of(' ') + 1)) + "\n";
  }
  for (const auto& [name, type] : summary.outputs)
    out += "output " + name + ": " + type.text() + "\n";
  out += "parameters: " + grouped(summary.parameter_count) + "\n";
  if (summary.state_count) out += "states: " + grouped(summary.state_count) + "\n";
  for (const auto& [name, row] : summary.tables)
    out += "table " + name + ": a row of " + row.text() + " for each key\n";
  std::vector<std::string> sizes;
  for (const auto& [name, size] : summary.dims) sizes.push_back(str(name, "=", size));
  out += "FLOPs: " + short_count(summary.flops);
  out += sizes.empty() ? "\n" : " for " + join(sizes, ", ") + "\n";
  for (const std::string& note : summary.notes) out += "note: " + note + "\n";
  return out;
}

}  // namespace paddle::lang
