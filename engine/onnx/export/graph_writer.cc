#include "onnx/export/graph_writer.h"

#include <algorithm>
#include <cstring>

#include "onnx/export/simplify.h"
#include "onnx/validity/validity.h"
#include "ops/core/call.h"
#include "tensor/dim_expression.h"

namespace paddle::onnx {

using formats::onnx::Graph;
using formats::onnx::Node;
using formats::onnx::TensorData;
using formats::onnx::ValueInfo;
using formats::onnx::ValueType;

std::vector<int64_t> onnx_pads(const std::vector<int64_t>& pairs) {
  std::vector<int64_t> out;
  for (size_t side = 0; side < 2; ++side)
    for (size_t i = side; i < pairs.size(); i += 2) out.push_back(pairs[i]);
  return out;
}

namespace {

/// The dim with the symbols that the options fix replaced by their sizes.
Dim fixed_dim(const Dim& dim, const ExportOptions& options) {
  return dim.substitute([&](const std::string& symbol) -> std::optional<Dim> {
    const auto size = options.dims.find(symbol);
    return size == options.dims.end() ? std::nullopt : std::optional(Dim(size->second));
  });
}

ValueInfo info_of(const std::string& name, const TensorType& type, const ExportOptions& options) {
  ValueInfo out;
  out.name = name;
  out.type.kind = ValueType::Kind::kTensor;
  out.type.dtype = type.dtype;
  Shape shape;
  for (const Dim& dim : type.shape) shape.push_back(fixed_dim(dim, options));
  out.type.shape = std::move(shape);
  return out;
}

}  // namespace

GraphWriter::GraphWriter(const ExportOptions& options, const WeightLookup& weights)
    : options_(options),
      weights_(weights),
      opset_(options.opset != 0 ? options.opset : options.least_opset) {
  out_.opset_reason = options.least_opset_reason;
}

// --- the operation at hand ---

const AttrValue& GraphWriter::attr(std::string_view name) const {
  const int i = op().attr_index(name);
  ensure(i >= 0, "export of ", op().name(), ": no attribute '", name, "'");
  return operation_->attrs[static_cast<size_t>(i)];
}

std::vector<const ir::Value*> GraphWriter::operand_list(std::string_view name) const {
  const int wanted = op().operand_index(name);
  ensure(wanted >= 0, "export of ", op().name(), ": no operand '", name, "'");
  size_t at = 0, list = 0;
  for (size_t i = 0; i < op().operands().size(); ++i) {
    const bool is_list = op().operands()[i].kind == OperandKind::kList;
    const size_t count =
        is_list ? static_cast<size_t>(operation_->attrs.list_sizes.at(list++)) : size_t{1};
    if (static_cast<int>(i) == wanted)
      return {operation_->operands.begin() + static_cast<ptrdiff_t>(at),
              operation_->operands.begin() + static_cast<ptrdiff_t>(at + count)};
    at += count;
  }
  return {};
}

const ir::Value* GraphWriter::operand(std::string_view name) const {
  return operand_list(name).at(0);
}

std::string GraphWriter::in(std::string_view operand_name) {
  const ir::Value* value = operand(operand_name);
  return value ? name_of(*value) : "";
}

const TensorType& GraphWriter::type(std::string_view operand_name) const {
  return operand(operand_name)->type;
}

bool GraphWriter::is_used(size_t result) const {
  return result < operation_->results.size() && uses_.contains(operation_->results[result]);
}

int GraphWriter::count_uses(const ir::Value& value) const {
  const auto found = uses_.find(&value);
  return found == uses_.end() ? 0 : found->second;
}

void GraphWriter::result(size_t i, const std::string& name) {
  const ir::Value* value = operation_->results.at(i);
  const auto wanted = wanted_.find(value);
  if (wanted != wanted_.end() && wanted->second != name)
    names_[value] = add("Identity", {name}, {}, wanted->second);
  else
    names_[value] = name;
}

void GraphWriter::reject(const std::string& why) const {
  fail(ErrorCode::kModel, operation_->location, operation_->location.empty() ? "" : ": ",
       op().name(), ": has no ONNX form: ", why);
}

// --- nodes ---

std::string GraphWriter::fresh(const std::string& hint) {
  if (used_.insert(hint).second) return hint;
  for (int64_t i = 1;; ++i)
    if (std::string name = str(hint, "_", i); used_.insert(name).second) return name;
}

std::string GraphWriter::name_of(const ir::Value& value) {
  if (const auto known = names_.find(&value); known != names_.end()) return known->second;
  ensure(value.constant.has_value(), "export: value %", value.id, " is not defined");
  std::string name = constant(*value.constant);
  names_[&value] = name;
  return name;
}

Names GraphWriter::add_several(const std::string& type, Names inputs, size_t outputs,
                               ExportAttributes attributes) {
  Node node;
  node.op_type = type;
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  const std::string hint = operation_ ? std::string(op().name()) : type;
  for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(fresh(hint + "_out"));
  node.name = fresh(hint);
  if (operation_) node.source = operation_->location;
  graph_->nodes.push_back(node);
  return node.outputs;
}

std::string GraphWriter::add(const std::string& type, Names inputs, ExportAttributes attributes,
                             const std::string& output) {
  std::string made = add_several(type, std::move(inputs), 1, std::move(attributes))[0];
  if (output.empty()) return made;
  used_.erase(made);
  return graph_->nodes.back().outputs[0] = output;
}

void GraphWriter::emit(const std::string& type, Names inputs, ExportAttributes attributes) {
  const ir::Value* value = operation_->results.at(0);
  const auto wanted = wanted_.find(value);
  names_[value] = add(type, std::move(inputs), std::move(attributes),
                      wanted == wanted_.end() ? "" : wanted->second);
}

void GraphWriter::require_opset(int64_t opset, const std::string& operator_name) {
  if (opset <= opset_) return;
  const std::string place = operation_ && !operation_->location.empty()
                                ? str(operation_->location, ": ", op().name(), ": ")
                                : "";
  if (options_.opset != 0)
    fail(ErrorCode::kUsage, place, operator_name, " needs opset ", opset, ", --opset is ",
         options_.opset);
  if (options_.most_opset != 0 && opset > options_.most_opset)
    fail(ErrorCode::kUsage, place, operator_name, " needs opset ", opset, ", ", options_.target,
         " has ", options_.most_opset);
  opset_ = opset;
  out_.opset_reason = operator_name;
}

std::string GraphWriter::constant(const Array& array, const std::string& hint) {
  const Array packed = array.contiguous();
  const auto size = static_cast<size_t>(storage_bytes(packed.dtype, packed.size()));
  std::string key;
  if (size <= 64) {
    key = text(packed.dtype) + str(packed.shape) + ":";
    if (size > 0) key.append(static_cast<const char*>(packed.raw()), size);
    if (const auto known = constants_.find(key); known != constants_.end()) return known->second;
  }
  std::string name = own_constant(packed, hint);
  if (!key.empty()) constants_[key] = name;
  return name;
}

std::string GraphWriter::own_constant(const Array& array, const std::string& hint) {
  TensorData tensor;
  tensor.name = fresh(hint);
  tensor.array = array.contiguous();
  tensor.dtype = array.dtype;
  tensor.shape = array.shape;
  // Constants are initializers of the outermost graph, which every subgraph sees.
  out_.model.graph.initializers.push_back(std::move(tensor));
  return out_.model.graph.initializers.back().name;
}

std::string GraphWriter::ints(const std::vector<int64_t>& values) {
  return constant(Array::from<int64_t>(values, {static_cast<int64_t>(values.size())}));
}

std::string GraphWriter::scalar(double value, DType dtype) {
  return constant(Array::scalar(value).cast(dtype));
}

std::string GraphWriter::cast(const std::string& name, DType from, DType to) {
  if (from == to) return name;
  return add("Cast", {name}, {int_attribute("to", formats::onnx::number_of_dtype(to))});
}

Dim GraphWriter::fixed(const Dim& dim) const { return fixed_dim(dim, options_); }

std::string GraphWriter::dim(const Dim& given) {
  const Dim d = fixed(given);
  if (d.is_constant()) return ints({d.value()});
  const std::string key = d.text();
  if (const auto known = dims_.find(key); known != dims_.end()) return known->second;
  std::string out;
  if (d.is_symbol()) {
    const auto source = symbols_.find(key);
    if (source == symbols_.end())
      fail(ErrorCode::kUsage, "the dim '", key,
           "' is not a plain dim of any shape before it is used, so the graph cannot compute it; "
           "fix it "
           "with --dim ",
           key, "=…");
    const auto& [value, axis] = source->second;
    out = opset() >= 15 ? add("Shape", {value},
                              {int_attribute("start", axis), int_attribute("end", axis + 1)})
                        : add("Gather", {add("Shape", {value}), ints({axis})});
  } else {
    for (const Term& term : *DimAccess::raw_terms(d)) {
      std::string product;
      for (const AtomRef& atom : term.factors) {
        std::string factor;
        switch (atom->kind) {
          case AtomKind::kSymbol:
            factor = dim(Dim::symbol(atom->key));
            break;
          case AtomKind::kFloorDivide:
            // Sizes are not negative, where Div rounds as floor division does.
            factor = add("Div", {dim(atom->a), dim(atom->b)});
            break;
          case AtomKind::kModulo:
            factor = add("Mod", {dim(atom->a), dim(atom->b)});
            break;
          case AtomKind::kMaximum:
            factor = add("Max", {dim(atom->a), dim(atom->b)});
            break;
          case AtomKind::kMinimum:
            factor = add("Min", {dim(atom->a), dim(atom->b)});
            break;
          case AtomKind::kUnknown:
            fail(ErrorCode::kUsage, "an unknown dim cannot be exported");
        }
        product = product.empty() ? factor : add("Mul", {product, factor});
      }
      if (product.empty())
        product = ints({term.coefficient});
      else if (term.coefficient != 1)
        product = add("Mul", {product, ints({term.coefficient})});
      out = out.empty() ? product : add("Add", {out, product});
    }
  }
  dims_[key] = out;
  return out;
}

std::string GraphWriter::shape(const Shape& given) {
  Shape shape;
  for (const Dim& d : given) shape.push_back(fixed(d));
  if (is_constant(shape)) return ints(concrete(shape));
  Names parts;
  std::vector<int64_t> run;
  const auto flush = [&] {
    if (!run.empty()) parts.push_back(ints(std::exchange(run, {})));
  };
  for (const Dim& d : shape) {
    if (d.is_constant()) {
      run.push_back(d.value());
    } else {
      flush();
      parts.push_back(dim(d));
    }
  }
  flush();
  return parts.size() == 1 ? parts[0] : add("Concat", parts, {int_attribute("axis", 0)});
}

std::string GraphWriter::reshape(const std::string& name, const Shape& given) {
  Shape to;
  for (const Dim& d : given) to.push_back(fixed(d));
  const auto symbolic =
      std::count_if(to.begin(), to.end(), [](const Dim& d) { return !d.is_constant(); });
  const bool zero =
      std::any_of(to.begin(), to.end(), [](const Dim& d) { return d.constant() == 0; });
  // One unknown size can be left to the runtime, unless another one is 0.
  if (symbolic == 1 && !zero) {
    std::vector<int64_t> sizes;
    for (const Dim& d : to) sizes.push_back(d.is_constant() ? d.value() : -1);
    return add("Reshape", {name, ints(sizes)});
  }
  ExportAttributes attributes;
  // Until opset 14 a size of 0 stands for that of the operand.
  if (zero) require_opset(14, "Reshape to a size of 0");
  if ((zero || symbolic > 0) && opset() >= 14) attributes.push_back(int_attribute("allowzero", 1));
  return add("Reshape", {name, shape(to)}, std::move(attributes));
}

std::string GraphWriter::transpose(const std::string& name, std::vector<int64_t> permutation) {
  return add("Transpose", {name}, {ints_attribute("perm", std::move(permutation))});
}

std::string GraphWriter::reduce(const std::string& type, const std::string& name,
                                const std::vector<int64_t>& axes, bool keep_axes) {
  ExportAttributes attributes = {int_attribute("keepdims", keep_axes ? 1 : 0)};
  Names inputs = {name};
  // Until opset 18 all but ReduceSum have their axes as an attribute.
  const bool as_input = type == "ReduceSum" || opset() >= 18;
  if (!axes.empty() && as_input)
    inputs.push_back(ints(axes));
  else if (!axes.empty())
    attributes.push_back(ints_attribute("axes", axes));
  return add(type, inputs, std::move(attributes));
}

// --- graphs ---

void GraphWriter::note_symbols(const Shape& shape, const std::string& value) {
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i].is_symbol())
      symbols_.try_emplace(shape[i].text(), SymbolSource{value, static_cast<int64_t>(i)});
}

void GraphWriter::write_operation(const ir::Operation& operation) {
  const ir::Operation* const outer = std::exchange(operation_, &operation);
  const ExportRule rule = find_export_rule(op().name());
  if (!rule) reject("the operation has no rule");
  rule(*this);
  for (const ir::Value* value : operation.results)
    if (const auto name = names_.find(value); name != names_.end())
      note_symbols(value->type.shape, name->second);
  ++out_.native[std::string(op().name())];
  operation_ = outer;
}

Names GraphWriter::inline_region(const ir::Region& region, const Names& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) names_[region.arguments[i]] = arguments[i];
  for (const auto& operation : region.operations) write_operation(*operation);
  Names out;
  for (const ir::Value* value : region.results) out.push_back(name_of(*value));
  return out;
}

std::shared_ptr<Graph> GraphWriter::subgraph(const std::string& name,
                                             const std::vector<ValueInfo>& inputs,
                                             const std::function<Names()>& fill) {
  auto graph = std::make_shared<Graph>();
  graph->name = fresh(name);
  graph->inputs = inputs;
  Graph* const outer = std::exchange(graph_, graph.get());
  // Values of the subgraph are not visible outside of it.
  const auto symbols = symbols_;
  const auto dims = dims_;
  for (const std::string& result : fill()) {
    // A subgraph's outputs are values of its own, each once.
    graph->outputs.push_back({add("Identity", {result}), {}});
  }
  graph_ = outer;
  symbols_ = symbols;
  dims_ = dims;
  return graph;
}

bool GraphWriter::is_stored_as(const ir::Value& value, DType dtype) const {
  const auto found = stored_.find(&value);
  return found != stored_.end() && found->second == dtype;
}

namespace {

/// Values of which every use is a cast to one 16-bit type.
std::unordered_map<const ir::Value*, DType> only_cast(const ir::Function& function) {
  std::unordered_map<const ir::Value*, DType> out;
  std::set<const ir::Value*> others(function.body.results.begin(), function.body.results.end());
  ir::for_each_operation(function.body, [&](const ir::Operation& operation) {
    const bool casts = operation.op->name() == "cast";
    for (const ir::Value* value : operation.operands) {
      if (!value) continue;
      const DType to = casts ? operation.results[0]->type.dtype : value->type.dtype;
      if (!casts || (to != DType::kF16 && to != DType::kBF16) ||
          out.try_emplace(value, to).first->second != to)
        others.insert(value);
    }
    for (const auto& region : operation.regions)
      others.insert(region->results.begin(), region->results.end());
  });
  for (const ir::Value* value : others) out.erase(value);
  return out;
}

}  // namespace

ExportedModel GraphWriter::write(const ir::Function& function) {
  formats::onnx::Model& model = out_.model;
  graph_ = &model.graph;
  graph_->name = options_.name;
  for (const auto& [value, count] : ir::count_uses(function)) uses_[value] = count;
  std::unordered_map<const ir::Value*, DType> cast_only;
  if (options_.low) cast_only = only_cast(function);
  const auto is_value = [](const ir::Port& port) { return port.kind == ir::PortKind::kValue; };
  const auto changes = [&](const ir::Port& port) {
    return std::any_of(function.outputs.begin(), function.outputs.end(), [&](const ir::Port& out) {
      return out.kind == port.kind && out.name == port.name;
    });
  };
  // Names that the file promises come first.
  Names outputs;
  for (const ir::Port& port : function.inputs)
    if (is_value(port)) used_.insert(port.name);
  // A graph has one value of a name: an output named like an input gets another one.
  std::map<std::pair<ir::PortKind, std::string>, std::string> next;
  for (const ir::Port& port : function.outputs) {
    outputs.push_back(fresh(is_value(port) ? port.name : port.name + ".next"));
    next[{port.kind, port.name}] = outputs.back();
  }
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const ir::Port& port = function.inputs[i];
    const ir::Value* value = function.body.arguments[i];
    if (port.kind == ir::PortKind::kRandom) continue;
    const bool is_weight = !is_value(port) && !changes(port);
    // A state that is only written, such as the norm of the gradients, has no input.
    if ((is_weight || options_.training) && !uses_.contains(value)) continue;
    const std::string name = is_value(port) ? port.name : fresh(port.name);
    names_[value] = name;
    if (is_weight || (!is_value(port) && options_.training)) {
      TensorData tensor;
      tensor.name = name;
      if (options_.defer_weights) {
        tensor.array = Array::reserve(value->type.dtype, concrete(value->type.shape));
        out_.weights[name] = port.name;
      } else {
        tensor.array = weights_(port.name);
      }
      tensor.dtype = tensor.array.dtype;
      // Writing the file converts the array, so that one weight at a time is in memory.
      if (const auto low = cast_only.find(value); is_weight && low != cast_only.end())
        tensor.dtype = stored_[value] = low->second;
      tensor.shape = tensor.array.shape;
      graph_->initializers.push_back(std::move(tensor));
    }
    if (!is_weight) {
      graph_->inputs.push_back(info_of(name, value->type, options_));
      if (!is_value(port)) {
        out_.states[name] = port.name;
        out_.next[name] = next.at({port.kind, port.name});
      }
      note_symbols(value->type.shape, name);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ir::Value* value = function.body.results[i];
    if (value->producer) wanted_.try_emplace(value, outputs[i]);
  }
  for (const auto& operation : function.body.operations) {
    write_operation(*operation);
    for (const ir::Value* value : operation->results)
      if (const auto name = names_.find(value); name != names_.end())
        out_.values.emplace_back(value, name->second);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ir::Value* value = function.body.results[i];
    if (const std::string name = name_of(*value); name != outputs[i])
      add("Identity", {name}, {}, outputs[i]);
    graph_->outputs.push_back(info_of(outputs[i], value->type, options_));
  }
  simplify(*graph_);
  model.ir_version = ir_version_of(opset_);
  model.producer = options_.producer;
  model.opsets = {{"", opset_}};
  model.metadata = options_.metadata;
  out_.opset = opset_;
  return std::move(out_);
}

}  // namespace paddle::onnx
