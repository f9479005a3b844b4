// Control flow of programs as graphs: blocks become graphs of nodes `if` and `while`, which see the
// values of the blocks around them. What a block assigns to a name of an outer block is a result of
// its node, and for a loop a carried value.

#include <algorithm>
#include <utility>

#include "formats/onnx/attributes.h"
#include "paddle_program/importer.h"
#include "paddle_program/program_call.h"

namespace paddle::paddle_program {

using formats::PaddleBlock;
using formats::onnx::ValueInfo;

namespace {

constexpr int kMaxNesting = 32;

formats::onnx::Attribute graph_attribute(const std::string& name,
                                         std::shared_ptr<formats::onnx::Graph> graph) {
  formats::onnx::Attribute out;
  out.name = name;
  out.kind = formats::onnx::AttributeKind::kGraph;
  out.graphs.push_back(std::move(graph));
  return out;
}

ValueInfo named_value(const std::string& name) {
  ValueInfo out;
  out.name = name;
  return out;
}

/// A copy that gives these values.
std::shared_ptr<formats::onnx::Graph> giving(const formats::onnx::Graph& graph,
                                             const std::vector<std::string>& values) {
  auto out = std::make_shared<formats::onnx::Graph>(graph);
  out->outputs.clear();
  for (const std::string& each : values) out->outputs.push_back(named_value(each));
  return out;
}

}  // namespace

const PaddleBlock& ProgramImporter::block_of(const Operation& operation, size_t i) const {
  if (i >= operation.blocks.size() || operation.blocks[i] == 0 ||
      operation.blocks[i] >= program_.blocks.size())
    fail(ErrorCode::kModel, path_, ": ", operation.type, " (", place(), ") has no block ", i);
  return program_.blocks[operation.blocks[i]];
}

std::set<std::string> ProgramImporter::assigned_in(size_t block, int depth) const {
  std::set<std::string> out;
  if (depth > kMaxNesting || block >= program_.blocks.size())
    fail(ErrorCode::kModel, path_, ": blocks are nested more than ", kMaxNesting, " deep");
  for (const Operation& operation : program_.blocks[block].operations) {
    for (const auto& [slot, names] : operation.outputs)
      for (const std::string& name : names)
        if (slot != "StepScopes" && slot != "Scope") out.insert(name);
    const bool changes =
        program_.is_pir && operation.type.ends_with('_') && operation.outputs.size() == 1;
    const size_t at = operation.type == "assign_out_" ? 1 : 0;
    if (changes && at < operation.inputs.size() && !operation.inputs[at].second.empty())
      out.insert(operation.inputs[at].second[0]);
    for (const size_t inner : operation.blocks) {
      const auto names = assigned_in(inner, depth + 1);
      out.insert(names.begin(), names.end());
    }
  }
  out.erase("");
  return out;
}

ProgramImporter::Names ProgramImporter::assigned_outside(size_t block) const {
  Names out;
  for (const std::string& name : assigned_in(block))
    if (scope_->find(name)) out.push_back(name);
  return out;
}

std::shared_ptr<ProgramImporter::Graph> ProgramImporter::new_graph(Scope& scope,
                                                                   const std::string& name) {
  const auto graph = std::make_shared<Graph>();
  graph->name = name;
  scope.outer = scope_;
  scope.graph = graph.get();
  return graph;
}

ProgramImporter::Names ProgramImporter::yielded(const PaddleBlock& block) {
  Names out;
  if (block.operations.empty() || block.operations.back().type != "yield") return out;
  for (const auto& [slot, names] : block.operations.back().inputs)
    out.push_back(names.empty() ? "" : names[0]);
  return out;
}

void ProgramImporter::add_control(
    const Operation& operation, const char* type, Names inputs, std::vector<int64_t> operands,
    const std::vector<std::pair<std::string, std::shared_ptr<Graph>>>& graphs,
    const Names& outputs) {
  const auto rule = find_program_rule(type, program_.is_pir);
  Node node;
  node.domain = kProgramDomain;
  node.op_type = type;
  node.source = operation.source;
  node.name = fresh(type);
  node.inputs = std::move(inputs);
  node.attributes = {formats::onnx::ints_attribute(kOperands, std::move(operands)),
                     formats::onnx::int_attribute(kRule, static_cast<int64_t>(rule.value()))};
  for (const auto& [name, graph] : graphs) node.attributes.push_back(graph_attribute(name, graph));
  for (const std::string& name : outputs)
    node.outputs.push_back(fresh(name.starts_with('%') ? node.name + "_out" : name));
  const Names made = node.outputs;
  scope_->graph->nodes.push_back(std::move(node));
  for (size_t i = 0; i < outputs.size(); ++i) assign(outputs[i], made[i]);
}

/// Runs the block if the condition holds. Names that have no value before it get one from
/// select_input, together with the block of the other branch.
void ProgramImporter::import_conditional(const Operation& operation) {
  block_of(operation, 0);
  const size_t block = operation.blocks[0];
  const Names* condition = slot(operation.inputs, "Cond", 0);
  if (!condition || condition->size() != 1)
    fail(ErrorCode::kModel, path_, ": conditional_block (", place(), ") has no condition");
  const std::string chosen_by = value((*condition)[0]);
  const Names before = assigned_outside(block);
  Scope inner;
  const auto graph = new_graph(inner, "conditional_block");
  import_block(block, inner);
  if (!problems_.empty()) return;
  const auto branch = std::make_shared<Branch>();
  branch->graph = graph;
  branch->made = inner.names;
  for (const std::string& name : assigned_in(block))
    if (!scope_->find(name)) scope_->chosen[name] = branch;
  if (before.empty()) return;
  Names then_values, else_values;
  for (const std::string& name : before) {
    then_values.push_back(*inner.find(name));
    else_values.push_back(value(name));
  }
  add_control(operation, "if", {chosen_by}, {0},
              {{"then", giving(*graph, then_values)}, {"else", giving(Graph(), else_values)}},
              before);
}

/// 0 takes the first value. Further operations of the same choice are one node, so that branches
/// run once.
void ProgramImporter::import_select(const Operation& operation) {
  const Names* const own = slot(operation.outputs, "Out", 0);
  if (!own || own->empty())
    fail(ErrorCode::kModel, path_, ": select_input (", place(), ") has no result");
  const auto mask_of = [&](const Operation& each) {
    const Names* mask = slot(each.inputs, "Mask", 0);
    return mask && mask->size() == 1 ? (*mask)[0] : "";
  };
  const auto& operations = program_.blocks[block_].operations;
  // An earlier one has done this one's work.
  if (position_ > 0 && operations[position_ - 1].type == "select_input" &&
      mask_of(operations[position_ - 1]) == mask_of(operation))
    return;
  Names outputs;
  Names sides[2];
  std::shared_ptr<Branch> branches[2];
  for (size_t at = position_; at < operations.size(); ++at) {
    const Operation& each = operations[at];
    if (each.type != "select_input" || mask_of(each) != mask_of(operation)) break;
    const Names* names = slot(each.inputs, "X", 0);
    const Names* made = slot(each.outputs, "Out", 0);
    if (!names || names->size() != 2 || !made || made->empty())
      fail(ErrorCode::kModel, path_, ": select_input (", place(), ") does not choose from two");
    for (size_t side = 0; side < 2; ++side) {
      const std::string& name = (*names)[side];
      const auto branch = scope_->find(name) ? nullptr : scope_->find_chosen(name);
      if (!branch) {
        sides[side].push_back(value(name));
        continue;
      }
      if (branches[side] && branches[side] != branch) {
        if (problems_.empty()) note("its values are those of several conditional_blocks");
        return;
      }
      branches[side] = branch;
      const auto found = branch->made.find(name);
      if (found == branch->made.end())
        fail(ErrorCode::kModel, path_, ": '", name, "' is not computed (", place(), ")");
      sides[side].push_back(found->second);
    }
    outputs.push_back((*made)[0]);
  }
  if (!problems_.empty()) return;
  const Graph none;
  const auto side = [&](size_t i) {
    return giving(branches[i] ? *branches[i]->graph : none, sides[i]);
  };
  add_control(operation, "if", {value(mask_of(operation))}, {0},
              {{"then", side(1)}, {"else", side(0)}}, outputs);
}

void ProgramImporter::import_pir_if(const Operation& operation) {
  if (operation.inputs.size() != 1 || operation.inputs[0].second.empty())
    fail(ErrorCode::kModel, path_, ": if (", place(), ") has no condition");
  const std::string condition = value(operation.inputs[0].second[0]);
  Names outputs;
  for (const auto& [slot, names] : operation.outputs)
    outputs.push_back(names.empty() ? "" : names[0]);
  // Lists that a branch changes in place.
  std::set<std::string> changed;
  for (size_t i = 0; i < 2; ++i) {
    block_of(operation, i);
    for (const std::string& name : assigned_outside(operation.blocks[i])) changed.insert(name);
  }
  std::vector<std::pair<std::string, std::shared_ptr<Graph>>> graphs;
  for (size_t i = 0; i < 2; ++i) {
    Scope inner;
    const auto graph = new_graph(inner, "if");
    import_block(operation.blocks[i], inner);
    if (!problems_.empty()) continue;
    Names values;
    const Names given = yielded(block_of(operation, i));
    if (given.size() != outputs.size())
      fail(ErrorCode::kModel, path_, ": a branch of if (", place(), ") gives ", given.size(),
           " values, not ", outputs.size());
    for (const Names& list : {given, Names(changed.begin(), changed.end())})
      for (const std::string& name : list) {
        const std::string* found = inner.find(name);
        if (!found)
          fail(ErrorCode::kModel, path_, ": '", name, "' is not computed (", place(), ")");
        values.push_back(*found);
      }
    graphs.emplace_back(i == 0 ? "then" : "else", giving(*graph, values));
  }
  if (!problems_.empty()) return;
  outputs.insert(outputs.end(), changed.begin(), changed.end());
  add_control(operation, "if", {condition}, {0}, graphs, outputs);
}

void ProgramImporter::import_while(const Operation& operation) {
  const PaddleBlock& block = block_of(operation, 0);
  const size_t index = operation.blocks[0];
  Names first, arguments, results, next;  // by the program's names
  std::string condition, next_condition;
  const auto operand = [&](size_t i) {
    const auto& names = operation.inputs[i].second;
    return names.empty() ? std::string() : names[0];
  };
  if (program_.is_pir) {
    if (operation.inputs.empty())
      fail(ErrorCode::kModel, path_, ": while (", place(), ") has no condition");
    condition = operand(0);
    for (size_t i = 1; i < operation.inputs.size(); ++i) first.push_back(operand(i));
    arguments = block.arguments;
    next = yielded(block);
    for (const auto& [slot, names] : operation.outputs)
      results.push_back(names.empty() ? "" : names[0]);
    if (arguments.size() != first.size() || next.size() != first.size() + 1 ||
        results.size() != first.size())
      fail(ErrorCode::kModel, path_, ": while (", place(), ") has ", first.size(), " operands, ",
           arguments.size(), " arguments, ", next.size(), " values for the next turn and ",
           results.size(), " results");
    next_condition = next[0];
    next.erase(next.begin());
  } else {
    const Names* given = slot(operation.inputs, "Condition", 0);
    if (!given || given->size() != 1)
      fail(ErrorCode::kModel, path_, ": while (", place(), ") has no condition");
    condition = next_condition = (*given)[0];
  }
  const Names changed = assigned_outside(index);
  for (const std::string& name : changed)
    for (Names* list : {&first, &arguments, &results, &next}) list->push_back(name);

  Names inputs = {value(condition)};
  std::vector<int64_t> operands = {0};
  for (const std::string& name : first) {
    inputs.push_back(value(name));
    operands.push_back(1);
  }
  Scope inner;
  const auto graph = new_graph(inner, "while");
  for (const std::string& name : arguments) {
    const std::string argument = fresh(name.starts_with('%') ? "carried" : name);
    graph->inputs.push_back(named_value(argument));
    inner.names[name] = argument;
  }
  import_block(index, inner);
  if (!problems_.empty()) return;
  next.insert(next.begin(), next_condition);
  for (const std::string& name : next) {
    const std::string* found = inner.find(name);
    if (!found) fail(ErrorCode::kModel, path_, ": '", name, "' is not computed (", place(), ")");
    graph->outputs.push_back(named_value(*found));
  }
  add_control(operation, "while", inputs, operands, {{"body", graph}}, results);
}

}  // namespace paddle::paddle_program
