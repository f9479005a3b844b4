#include "inspect/reference.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "onnx/export/export.h"
#include "ops/core/kernel.h"
#include "ops/core/operand_types.h"
#include "runtime/execute.h"

namespace paddle::inspect {
namespace {

using Json = nlohmann::ordered_json;

std::string type_text(const AttrDef& a) {
  std::string text;
  switch (a.type) {
    case AttrType::kBool:
      text = "bool";
      break;
    case AttrType::kInt:
      text = "integer";
      break;
    case AttrType::kFloat:
      text = "number";
      break;
    case AttrType::kString:
      text = "text";
      break;
    case AttrType::kWord:
      text = a.words;
      break;
    case AttrType::kDType:
      text = "dtype";
      break;
    case AttrType::kDim:
      text = "size";
      break;
    case AttrType::kInts:
      text = "integers";
      break;
    case AttrType::kDims:
      text = "sizes";
      break;
    case AttrType::kFloats:
      text = "numbers";
      break;
    case AttrType::kStrings:
      text = "texts";
      break;
    case AttrType::kNumber:
      text = "number of any kind";
      break;
    case AttrType::kAny:
      text = "number, list or text";
      break;
  }
  if (a.or_tensor) text += ", or a tensor of known value";
  if (a.optional) text += ", or none";
  return text;
}

DTypeSet types_of(const Op& op, const OperandDef& operand) {
  return operand_types(op, static_cast<size_t>(&operand - op.operands().data()));
}

std::string operand_text(const Op& op, const OperandDef& o) {
  std::string text = o.kind == OperandKind::kList ? "list of tensors" : "tensor";
  if (o.optional) text += ", or none";
  if (o.promotes) text += "; promoted with the other T operands";
  if (o.host) text += "; read on the host";
  if (o.widened) text += "; of any float type";
  if (!o.shape_only) text += "; " + dtype_set_text(types_of(op, o));
  return text;
}

std::vector<std::string> trait_names(const Op& op) {
  constexpr std::pair<Trait, const char*> kNames[] = {{kElementwise, "elementwise"},
                                                      {kCommutative, "commutative"},
                                                      {kFloatInputs, "float_inputs"},
                                                      {kStrided, "strided"},
                                                      {kRandom, "random"},
                                                      {kReduction, "reduction"},
                                                      {kEffect, "effect"},
                                                      {kRunTimeShape, "run_time_shape"},
                                                      {kCreation, "creation"},
                                                      {kLinear, "linear"},
                                                      {kControlFlow, "control_flow"},
                                                      {kConstantFold, "constant_fold"},
                                                      {kOptimizerUpdate, "optimizer_update"},
                                                      {kStopGradient, "stop_gradient"},
                                                      {kDoubleInputs, "double_inputs"},
                                                      {kTakesComplex, "complex"},
                                                      {kAccessesFiles, "accesses_files"},
                                                      {kAccessesProcesses, "accesses_processes"},
                                                      {kAccessesNetwork, "accesses_network"},
                                                      {kAccessesTerminal, "accesses_terminal"},
                                                      {kAccessesRanks, "accesses_ranks"}};
  std::vector<std::string> out;
  for (const auto& [trait, name] : kNames)
    if (op.has(trait)) out.emplace_back(name);
  return out;
}

std::vector<std::string> aliases_of(const Op& op) {
  std::vector<std::string> out;
  for (const Alias& a : all_aliases())
    if (op.name() == a.name) out.emplace_back(a.alias);
  return out;
}

std::vector<std::string> overloads_of(const Op& op) {
  if (*op.def->overloads == 0) return {};
  return split(op.def->overloads, '|');
}

std::vector<std::string> backends_of(const Op& op) {
  runtime::register_backends();
  std::vector<std::string> out = kernel_backends(op);
  if (op.def->decompose) out.emplace_back("decomposition");
  return out;
}

/// Parameters that callers pass, in order.
template <class OnOperand, class OnAttr>
void for_each_parameter(const Op& op, OnOperand&& on_operand, OnAttr&& on_attr) {
  for (const ParamDef& p : op.params()) {
    const auto i = static_cast<size_t>(p.index);
    if (p.is_operand && !op.operands()[i].hidden) on_operand(op.operands()[i]);
    if (!p.is_operand && !op.attrs()[i].hidden) on_attr(op.attrs()[i]);
  }
}

Json entry(const Op& op) {
  Json parameters = Json::array();
  for_each_parameter(
      op,
      [&](const OperandDef& o) {
        parameters.push_back({{"name", o.name},
                              {"type", o.kind == OperandKind::kList ? "tensors" : "tensor"},
                              {"required", !o.optional},
                              {"dtypes", dtype_set_words(types_of(op, o))}});
      },
      [&](const AttrDef& a) {
        Json p = {{"name", a.name}, {"type", type_text(a)}, {"required", a.required}};
        if (!a.required) p["default"] = a.default_text;
        parameters.push_back(p);
      });
  std::vector<std::string> results;
  for (const ResultDef& r : op.results())
    if (!r.hidden) results.emplace_back(r.name);
  Json out = {{"name", op.name()},
              {"aliases", aliases_of(op)},
              {"family", op.def->family},
              {"signature", op.def->signature},
              {"parameters", parameters},
              {"results", results},
              {"doc", op.def->doc},
              {"backends", backends_of(op)},
              {"onnx", text(onnx::export_support(op).form)},
              {"differentiable", op.differentiable()},
              {"traits", trait_names(op)}};
  if (const auto forms = overloads_of(op); !forms.empty()) {
    out["overloads"] = Json::array();
    for (const std::string& form : forms)
      out["overloads"].push_back({{"name", form}, {"signature", get_op(form).def->signature}});
  }
  if (*op.def->layer_signature) out["layer"] = op.def->layer_signature;
  if (!op.differentiable()) out["no_gradient"] = op.def->no_gradient;
  return out;
}

std::string row(const std::string& name, const std::string& rest) {
  return "  " + name + std::string(name.size() < 22 ? 22 - name.size() : 1, ' ') + rest + "\n";
}

}  // namespace

std::string list_text() {
  std::string out;
  for (const Op* op : all_ops()) {
    std::string name(op->name());
    name.resize(std::max<size_t>(name.size() + 1, 30), ' ');
    out += name + (op->differentiable() ? "d  " : "   ") + op->def->doc + "\n";
  }
  return out + str(all_ops().size(), " operations; d: differentiable\n");
}

std::string list_json() {
  Json out = Json::array();
  for (const Op* op : all_ops()) out.push_back(entry(*op));
  return out.dump(1) + "\n";
}

std::string page(const Op& op) {
  std::string out = str(op.name(), op.def->signature, "\n\n  ", op.def->doc, "\n");
  if (*op.def->layer_signature)
    out += str("\nAs a layer: ", op.name(), op.def->layer_signature, "\n");
  out += "\nParameters\n";
  for_each_parameter(
      op, [&](const OperandDef& o) { out += row(o.name, operand_text(op, o)); },
      [&](const AttrDef& a) {
        out += row(a.name,
                   type_text(a) + (a.required ? "; required" : str("; default ", a.default_text)));
      });
  out += "\nResults\n";
  for (const ResultDef& r : op.results())
    if (!r.hidden)
      out += row(r.name, r.variadic   ? "any number of tensors"
                         : r.optional ? "tensor, if asked for"
                                      : "tensor");
  out += "\n";
  if (op.has(kFloatInputs))
    out += row("dtypes", "floating; integers and booleans count as float32");
  out += row("gradient", op.def->vjp           ? "by its rule"
                         : op.differentiable() ? "by its decomposition"
                                               : str("none: ", op.def->no_gradient));
  const auto backends = backends_of(op), traits = trait_names(op), aliases = aliases_of(op);
  out += row("runs by", join(backends, ", "));
  out += row("ONNX export", text(onnx::export_support(op).form));
  if (!traits.empty()) out += row("traits", join(traits, ", "));
  if (!aliases.empty()) out += row("also called", join(aliases, ", "));
  for (const std::string& form : overloads_of(op))
    out += row("also", str(op.name(), get_op(form).def->signature, ": ", form));
  return out;
}

}  // namespace paddle::inspect
