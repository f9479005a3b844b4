#include "paddle_program/importer.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "formats/onnx/attributes.h"
#include "paddle_program/program_call.h"

namespace paddle::paddle_program {

using formats::PaddleAttribute;
using formats::PaddleBlock;
using formats::PaddleVariable;
using formats::onnx::ValueInfo;
using formats::onnx::ValueType;

namespace {

constexpr int kMaxDepth = 32;
/// Stands in the table for the type that the program declares for the first result.
constexpr std::string_view kDeclaredType = "declared_type";
constexpr int64_t kVersion3 = 3000000;
constexpr size_t kMaxProblems = 1000;

/// Attributes of any operation that have no effect on results.
const std::set<std::string, std::less<>>& attributes_without_effect() {
  static const std::set<std::string, std::less<>> kNames = {"op_role",
                                                            "op_role_var",
                                                            "op_namescope",
                                                            "op_device",
                                                            "op_callstack",
                                                            "use_cudnn",
                                                            "use_mkldnn",
                                                            "mkldnn_data_type",
                                                            "use_quantizer",
                                                            "with_quant_attr",
                                                            "quantization_type",
                                                            "use_onednn",
                                                            "onednn_data_type",
                                                            "struct_name",
                                                            "stop_gradient",
                                                            "persistable",
                                                            "place",
                                                            "is_inference",
                                                            "op_result_type",
                                                            "dist_attr",
                                                            "op_dist_attr",
                                                            "data_type_",
                                                            "sub_block",
                                                            "name",
                                                            "execution_stream",
                                                            "stream_priority",
                                                            "Scale_x",
                                                            "Scale_y",
                                                            "Scale_out",
                                                            "Scale_in",
                                                            "Scale_in_eltwise",
                                                            "Scale_weights",
                                                            "workspace_size_MB",
                                                            "exhaustive_search",
                                                            "force_fp32_output",
                                                            "force_record_event",
                                                            "event_to_record",
                                                            "events_to_wait",
                                                            "chunk_id",
                                                            "op_order",
                                                            "col"};
  return kNames;
}

/// Whether an attribute that no rule knows asks for nothing: false, "" and the empty list. A whole
/// number may be an axis.
bool is_neutral(const PaddleAttribute& attribute, bool is_zero_neutral) {
  if (attribute.integers.empty() && attribute.reals.empty())
    return attribute.texts.empty() ||
           (attribute.texts.size() == 1 &&
            (attribute.texts[0].empty() || attribute.texts[0] == "AnyLayout"));
  return is_zero_neutral && attribute.reals.empty() && attribute.texts.empty() &&
         attribute.integers == std::vector<int64_t>{0};
}

std::string text_of(const PaddleAttribute& attribute) {
  std::string out;
  const auto add = [&](const auto& each) { out += str(out.empty() ? "" : ", ", each); };
  for (const int64_t each : attribute.integers) add(each);
  for (const double each : attribute.reals) add(each);
  for (const std::string& each : attribute.texts) add("'" + each + "'");
  const size_t count = attribute.integers.size() + attribute.reals.size() + attribute.texts.size();
  return count == 1 ? out : "[" + out + "]";
}

/// Equal as numbers: 1 and 1.0 are.
bool is_equal(const PaddleAttribute& a, const PaddleAttribute& b) {
  const auto numbers = [](const PaddleAttribute& each) {
    std::vector<double> out(each.integers.begin(), each.integers.end());
    out.insert(out.end(), each.reals.begin(), each.reals.end());
    return out;
  };
  return numbers(a) == numbers(b) && a.texts == b.texts;
}

bool is_input(const formats::PaddleOperation& operation) {
  return operation.type == "feed" || operation.type == "data";
}

ValueInfo info_of(const std::string& name, std::optional<DType> dtype) {
  ValueInfo out;
  out.name = name;
  if (!dtype) return out;
  out.type.kind = ValueType::Kind::kTensor;
  out.type.dtype = dtype;
  return out;
}

/// The operand that an operation in place changes; empty if it is not one.
std::string changed_operand(const formats::PaddleOperation& operation, bool is_pir) {
  if (!is_pir || !operation.type.ends_with('_') || operation.outputs.size() != 1) return "";
  const size_t position = operation.type == "assign_out_" ? 1 : 0;
  if (position >= operation.inputs.size() || operation.inputs[position].second.empty()) return "";
  return operation.inputs[position].second[0];
}

}  // namespace

const std::string* ProgramImporter::Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope; scope = scope->outer)
    if (const auto found = scope->names.find(name); found != scope->names.end())
      return &found->second;
  return nullptr;
}

const ProgramImporter::Names* ProgramImporter::Scope::find_list(const std::string& name) const {
  for (const Scope* scope = this; scope; scope = scope->outer)
    if (const auto found = scope->lists.find(name); found != scope->lists.end())
      return &found->second;
  return nullptr;
}

std::shared_ptr<ProgramImporter::Branch> ProgramImporter::Scope::find_chosen(
    const std::string& name) const {
  for (const Scope* scope = this; scope; scope = scope->outer)
    if (const auto found = scope->chosen.find(name); found != scope->chosen.end())
      return found->second;
  return nullptr;
}

ProgramImporter::ProgramImporter(formats::PaddleProgram program, const std::string& path)
    : program_(std::move(program)), path_(path) {
  model_.path = path;
  model_.producer = "PaddlePaddle";
  model_.opsets = {{kProgramDomain, 1}};
  model_.graph.name = std::filesystem::path(path).stem().string();
  for (const PaddleBlock& block : program_.blocks)
    for (const Operation& operation : block.operations)
      for (const auto& [name, values] : operation.inputs)
        for (const std::string& each : values) readers_[each].insert(operation.type);
}

// --- the operation at hand ---

std::string ProgramImporter::place() const {
  return str("block ", block_, ", operation ", position_,
             operation_->source.empty() ? "" : ", " + operation_->source);
}

void ProgramImporter::note(const std::string& why) {
  ++problem_count_;
  const std::string problem = str(operation_->type, ": ", why);
  const auto known = std::ranges::find(problems_, problem, &Problem::what);
  if (known != problems_.end())
    ++known->count;
  else if (problems_.size() < kMaxProblems)
    problems_.push_back({problem, place(), 1});
}

const PaddleVariable& ProgramImporter::variable(const std::string& name) const {
  static const PaddleVariable unknown;
  const auto found = program_.variables.find(name);
  return found == program_.variables.end() ? unknown : found->second;
}

const ProgramImporter::Names* ProgramImporter::slot(const Slots& slots, const std::string& name,
                                                    size_t position) const {
  if (program_.is_pir) return position < slots.size() ? &slots[position].second : nullptr;
  for (const auto& [each, values] : slots)
    if (each == name) return &values;
  return nullptr;
}

const std::string& ProgramImporter::value(const std::string& name) {
  static const std::string none;
  if (name.empty()) return none;
  if (const std::string* known = scope_->find(name)) return *known;
  // An operation before it that cannot be imported may have computed it.
  if (!problems_.empty()) return none;
  fail(ErrorCode::kModel, path_, ": the operation ", operation_->type, " (", place(), ") reads '",
       name, "', which ",
       scope_->find_chosen(name) ? "only one branch computes" : "nothing computes", " before it");
}

ProgramImporter::Names ProgramImporter::values_of(const Names& names) {
  Names out;
  for (const std::string& name : names) {
    if (const Names* list = scope_->find_list(name)) {
      for (const std::string& each : *list) out.push_back(value(each));
    } else if (!name.empty()) {
      out.push_back(value(name));
    }
  }
  return out;
}

std::string ProgramImporter::fresh(const std::string& hint) {
  if (used_.insert(hint).second) return hint;
  for (int64_t i = 1;; ++i)
    if (std::string name = str(hint, "_", i); used_.insert(name).second) return name;
}

void ProgramImporter::assign(const std::string& name, const std::string& value) {
  if (!name.empty()) scope_->names[name] = value;
}

bool ProgramImporter::is_read_by(const std::string& name, const std::string& type) const {
  const auto found = readers_.find(name);
  return found != readers_.end() && found->second == std::set<std::string>{type};
}

// --- rules ---

ProgramImporter::Names ProgramImporter::inputs_of(const Operation& operation,
                                                  const ProgramArgument& argument, size_t position,
                                                  bool& is_known) {
  is_known = true;
  if (program_.is_pir) {
    const Names* names = slot(operation.inputs, "", position);
    return names ? values_of(*names) : Names();
  }
  for (const std::string& each : argument.slots) {
    if (each.starts_with("current_")) {
      // The value of a result before the operation, which programs do not list as an operand.
      const Names* made = slot(operation.outputs, each.substr(8), 0);
      if (made && !made->empty() && scope_->find(made->front())) return {value(made->front())};
      continue;
    }
    const Names* names = slot(operation.inputs, each, 0);
    if (names && !names->empty()) return values_of(*names);
  }
  for (const std::string& each : argument.attributes) {
    const Names* names = slot(operation.inputs, each, 0);
    if (names && !names->empty()) return values_of(*names);
  }
  return {};
}

std::optional<PaddleAttribute> ProgramImporter::take_attribute(const Operation& operation,
                                                               const ProgramArgument& argument) {
  for (const std::string& each : argument.attributes) {
    if (each == kDeclaredType) return declared_type(operation);
    if (const auto found = operation.attributes.find(each); found != operation.attributes.end()) {
      // Of several that stand for one, those without values are not the one.
      const bool is_empty = found->second.integers.empty() && found->second.reals.empty() &&
                            found->second.texts.empty();
      if (is_empty && argument.attributes.size() > 1) continue;
      return found->second;
    }
  }
  return std::nullopt;
}

std::optional<PaddleAttribute> ProgramImporter::declared_type(const Operation& operation) const {
  if (operation.outputs.empty() || operation.outputs[0].second.empty()) return std::nullopt;
  const auto dtype = variable(operation.outputs[0].second[0]).dtype;
  if (!dtype) return std::nullopt;
  PaddleAttribute out;
  out.texts.emplace_back(paddle::text(*dtype));
  return out;
}

void ProgramImporter::check_known(const Operation& operation, const ProgramRule& rule) {
  std::set<std::string, std::less<>> slots, attributes;
  size_t pir_operands = 0;
  for (const ProgramArgument& argument : rule.arguments) {
    slots.insert(argument.slots.begin(), argument.slots.end());
    if (argument.is_operand) slots.insert(argument.attributes.begin(), argument.attributes.end());
    attributes.insert(argument.attributes.begin(), argument.attributes.end());
    pir_operands += argument.is_operand && argument.in_pir ? 1 : 0;
    if (!argument.is_fixed) continue;
    const auto given = take_attribute(operation, argument);
    if (given && !is_equal(*given, *argument.value))
      note(str("the attribute ", argument.attributes[0], " is ", text_of(*given), ", only ",
               text_of(*argument.value), " is supported"));
  }
  for (const auto& [name, value] : operation.attributes)
    if (!attributes.contains(name) && !attributes_without_effect().contains(name) &&
        !is_neutral(value, name.starts_with("is_") || name.starts_with("use_") ||
                               name.starts_with("fuse_")))
      note(str("the attribute ", name, " is ", text_of(value), ", which is not supported"));
  for (size_t i = 0; i < operation.inputs.size(); ++i) {
    const auto& [name, values] = operation.inputs[i];
    const bool is_given =
        std::any_of(values.begin(), values.end(), [](const std::string& v) { return !v.empty(); });
    if (is_given && (program_.is_pir ? i >= pir_operands : !slots.contains(name)))
      note(program_.is_pir ? str("operand ", i, " is not supported")
                           : str("the operand ", name, " is not supported"));
  }
}

void ProgramImporter::import_by_rule(const Operation& operation, const ProgramRule& rule,
                                     size_t index) {
  const size_t problems = problem_count_;
  check_known(operation, rule);
  Node node;
  node.domain = kProgramDomain;
  node.op_type = operation.type;
  node.source = operation.source;
  std::vector<int64_t> operands;
  size_t position = 0;
  for (size_t i = 0; i < rule.arguments.size(); ++i) {
    const ProgramArgument& argument = rule.arguments[i];
    Names values;
    bool is_known = false;
    if (argument.is_operand && (argument.in_pir || !program_.is_pir))
      values = inputs_of(operation, argument, position, is_known);
    position += argument.is_operand && argument.in_pir ? 1 : 0;
    for (const std::string& each : values) {
      node.inputs.push_back(each);
      operands.push_back(static_cast<int64_t>(i));
    }
    if (argument.is_fixed || argument.is_ignored) continue;
    const auto given = take_attribute(operation, argument);
    if (given) node.attributes.push_back(argument_attribute(argument.name, *given));
    const bool is_required =
        argument.is_operand ? !argument.is_optional : !argument.value && argument.name[0] != '@';
    // A type may be that of the operand.
    if (values.empty() && !given && !argument.value && is_required && argument.name != "dtype" &&
        !argument.is_list && problem_count_ == problems)
      note(str("its ", argument.is_operand ? "operand" : "attribute", " '",
               argument.slots.empty() ? argument.name : argument.slots[0], "' is missing"));
  }
  if (problem_count_ != problems) return;
  node.attributes.push_back(formats::onnx::ints_attribute(kOperands, operands));
  node.attributes.push_back(formats::onnx::int_attribute(kRule, static_cast<int64_t>(index)));

  Names assigned;
  for (size_t i = 0; i < rule.results.size(); ++i) {
    const ProgramResult& result = rule.results[i];
    const Names* names = nullptr;
    for (const std::string& each : result.slots)
      if (!names) names = slot(operation.outputs, each, i);
    // Results that nothing reads are not computed, unless they come in front of others.
    if (!result.is_list) {
      const std::string name = names && !names->empty() ? names->front() : "";
      const bool is_read = i == 0 || readers_.contains(name);
      assigned.push_back(is_read ? name : "");
      continue;
    }
    if (!names || names->empty()) continue;
    if (!program_.is_pir) {
      assigned.insert(assigned.end(), names->begin(), names->end());
      continue;
    }
    Names elements;
    for (size_t k = 0; k < variable(names->front()).list_size; ++k)
      elements.push_back(str(names->front(), "[", k, "]"));
    scope_->lists[names->front()] = elements;
    assigned.insert(assigned.end(), elements.begin(), elements.end());
  }
  if (!program_.is_pir && program_.version < kVersion3)
    node.attributes.push_back(formats::onnx::ints_attribute(kBeforeVersion3, {1}));
  if (rule.target == "quantize_linear" && !assigned.empty() &&
      is_read_by(assigned[0], "dequantize_linear"))
    node.attributes.push_back(formats::onnx::ints_attribute(kAsInt8, {1}));
  while (!assigned.empty() && assigned.back().empty()) assigned.pop_back();
  node.name = fresh(operation.type);
  for (const std::string& name : assigned)
    node.outputs.push_back(name.empty() ? ""
                                        : fresh(name.starts_with('%') ? node.name + "_out" : name));
  for (size_t i = 0; i < assigned.size(); ++i) assign(assigned[i], node.outputs[i]);
  if (const std::string changed = changed_operand(operation, program_.is_pir);
      !changed.empty() && !node.outputs.empty())
    assign(changed, node.outputs[0]);
  scope_->graph->nodes.push_back(std::move(node));
}

/// PIR's lists of values.
void ProgramImporter::combine(const Operation& operation) {
  const auto name_at = [](const Slots& slots, size_t i) {
    return i < slots.size() && !slots[i].second.empty() ? slots[i].second[0] : std::string();
  };
  const auto alias = [&](const std::string& made, const std::string& element) {
    if (const std::string* known = scope_->find(element))
      assign(made, *known);
    else if (problems_.empty())
      fail(ErrorCode::kModel, path_, ": the list of ", operation.type, " (", place(),
           ") is not known");
  };
  if (operation.type == "builtin.combine") {
    Names elements;
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      // The names that the elements have now, since they may be changed in place later.
      const std::string element = str(name_at(operation.outputs, 0), "[", i, "]");
      alias(element, name_at(operation.inputs, i));
      elements.push_back(element);
    }
    scope_->lists[name_at(operation.outputs, 0)] = elements;
    return;
  }
  const Names* list = scope_->find_list(name_at(operation.inputs, 0));
  if (!list) {
    if (problems_.empty())
      fail(ErrorCode::kModel, path_, ": the list of ", operation.type, " (", place(),
           ") is not known");
    return;
  }
  const Names elements = *list;
  if (operation.type == "builtin.split") {
    if (elements.size() != operation.outputs.size())
      fail(ErrorCode::kModel, path_, ": a list has ", elements.size(), " values, not ",
           operation.outputs.size(), " (", place(), ")");
    for (size_t i = 0; i < elements.size(); ++i) alias(name_at(operation.outputs, i), elements[i]);
    return;
  }
  const auto index = operation.attributes.find("index");
  const int64_t at = index == operation.attributes.end() || index->second.integers.empty()
                         ? -1
                         : index->second.integers[0];
  if (at < 0 || at >= static_cast<int64_t>(elements.size()))
    fail(ErrorCode::kModel, path_, ": an index of a list is out of range (", place(), ")");
  alias(name_at(operation.outputs, 0), elements[static_cast<size_t>(at)]);
}

void ProgramImporter::import_operation(const Operation& operation) {
  if (is_input(operation) || operation.type == "fetch" || operation.type == "yield") return;
  if (operation.type == "builtin.combine" || operation.type == "builtin.split" ||
      operation.type == "builtin.slice")
    return combine(operation);
  if (operation.type == "while") return import_while(operation);
  if (operation.type == "if" && program_.is_pir) return import_pir_if(operation);
  if (operation.type == "conditional_block") return import_conditional(operation);
  if (operation.type == "select_input") return import_select(operation);
  const auto index = find_program_rule(operation.type, program_.is_pir);
  if (!index) return note("unsupported operation");
  import_by_rule(operation, program_rules()[*index], *index);
}

void ProgramImporter::import_block(size_t block, Scope& scope) {
  Scope* const outer_scope = std::exchange(scope_, &scope);
  const Operation* const outer_operation = operation_;
  const size_t outer_block = std::exchange(block_, block), outer_position = position_;
  if (++depth_ > kMaxDepth)
    fail(ErrorCode::kModel, path_, ": blocks are nested more than ", kMaxDepth, " deep");
  add_arrays(program_.blocks[block]);
  const auto& operations = program_.blocks[block].operations;
  for (size_t i = 0; i < operations.size(); ++i) {
    operation_ = &operations[i];
    position_ = i;
    import_operation(operations[i]);
  }
  --depth_;
  scope_ = outer_scope;
  operation_ = outer_operation;
  block_ = outer_block;
  position_ = outer_position;
}

/// Lists of values are empty where the block that declares them begins.
void ProgramImporter::add_arrays(const PaddleBlock& block) {
  const auto rule = find_program_rule("create_array", /*is_pir=*/true);
  for (const std::string& name : block.arrays) {
    Node node;
    node.domain = kProgramDomain;
    node.op_type = "create_array";
    node.name = fresh(node.op_type);
    node.outputs = {fresh(name)};
    node.attributes = {formats::onnx::ints_attribute(kOperands, {}),
                       formats::onnx::int_attribute(kRule, static_cast<int64_t>(rule.value()))};
    assign(name, node.outputs[0]);
    scope_->graph->nodes.push_back(std::move(node));
  }
}

// --- the program ---

/// The place that an operation feed or fetch says, or the next one.
static int64_t column_of(const formats::PaddleOperation& operation, size_t next) {
  const auto found = operation.attributes.find("col");
  return found == operation.attributes.end() || found->second.integers.empty()
             ? static_cast<int64_t>(next)
             : found->second.integers[0];
}

void ProgramImporter::add_inputs() {
  std::multimap<int64_t, const Operation*> fed;  // by place
  for (const Operation& operation : program_.blocks[0].operations)
    if (is_input(operation) && !operation.outputs.empty() && !operation.outputs[0].second.empty())
      fed.emplace(column_of(operation, fed.size()), &operation);
  for (const auto& [column, operation] : fed) {
    const std::string& name = operation->outputs[0].second[0];
    const PaddleVariable& declared = variable(name);
    if (!declared.dtype) fail(ErrorCode::kModel, path_, ": the input '", name, "' has no type");
    ValueInfo info = info_of(fresh(name), declared.dtype);
    Shape shape;
    for (size_t i = 0; i < declared.shape.size(); ++i)
      shape.push_back(declared.shape[i] >= 0 ? Dim(declared.shape[i])
                      : i == 0               ? Dim::symbol("batch")
                               : Dim::symbol(formats::onnx::symbol_of(str(name, "_", i))));
    info.type.shape = std::move(shape);
    assign(name, info.name);
    model_.graph.inputs.push_back(std::move(info));
  }
}

void ProgramImporter::add_outputs() {
  std::map<int64_t, const Operation*> fetched;
  for (const Operation& operation : program_.blocks[0].operations)
    if (operation.type == "fetch") fetched[column_of(operation, fetched.size())] = &operation;
  if (fetched.empty()) fail(ErrorCode::kModel, path_, ": the program has no outputs");
  const auto rule = find_program_rule("assign", program_.is_pir);
  std::set<std::string> computed;
  for (const Node& node : model_.graph.nodes)
    computed.insert(node.outputs.begin(), node.outputs.end());
  for (const auto& [column, operation] : fetched) {
    operation_ = operation;
    if (operation->inputs.empty() || operation->inputs[0].second.empty())
      fail(ErrorCode::kModel, path_, ": an output has no value");
    const std::string& name = operation->inputs[0].second[0];
    const auto given = operation->attributes.find("name");
    const bool has_name = given != operation->attributes.end() && !given->second.texts.empty();
    std::string wanted = name;
    if (program_.is_pir) wanted = has_name ? given->second.texts[0] : str("output_", column);
    // A computed value that has the wanted name is an output once.
    if (value(name) == wanted && computed.erase(wanted) > 0) {
      model_.graph.outputs.push_back(info_of(wanted, variable(name).dtype));
      continue;
    }
    Node node;
    node.domain = kProgramDomain;
    node.op_type = "assign";
    node.inputs = {value(name)};
    node.outputs = {fresh(wanted)};
    node.name = fresh("fetch");
    node.attributes = {formats::onnx::ints_attribute(kOperands, {0}),
                       formats::onnx::int_attribute(kRule, static_cast<int64_t>(rule.value()))};
    model_.graph.outputs.push_back(info_of(node.outputs[0], variable(name).dtype));
    model_.graph.nodes.push_back(std::move(node));
  }
}

formats::onnx::Model ProgramImporter::run() {
  Scope scope;
  scope.graph = &model_.graph;
  scope_ = &scope;
  add_inputs();
  add_parameters();
  import_block(0, scope);
  scope_ = &scope;
  if (!problems_.empty()) {
    Error error(
        ErrorCode::kConfig,
        str(path_, ": ", problems_.size(),
            problems_.size() == 1 ? " operation cannot" : " operations cannot", " be imported"));
    for (const Problem& each : problems_)
      error.note(str(each.what, " (", each.place,
                     each.count > 1 ? str(", and ", each.count - 1, " more") : "", ")"));
    throw error;
  }
  add_outputs();
  return std::move(model_);
}

}  // namespace paddle::paddle_program
