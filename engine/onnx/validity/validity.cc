#include "onnx/validity/validity.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "onnx/validity/schema.h"
#include "onnx/validity/value_types.h"

namespace paddle::onnx {

using formats::onnx::Attribute;
using formats::onnx::AttributeKind;
using formats::onnx::Graph;
using formats::onnx::Model;
using formats::onnx::Node;
using formats::onnx::ValueInfo;
using formats::onnx::ValueType;

namespace {

char letter_of(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kFloat:
      return 'f';
    case AttributeKind::kInt:
      return 'i';
    case AttributeKind::kString:
      return 's';
    case AttributeKind::kTensor:
      return 't';
    case AttributeKind::kGraph:
      return 'g';
    case AttributeKind::kFloats:
      return 'F';
    case AttributeKind::kInts:
      return 'I';
    case AttributeKind::kStrings:
      return 'S';
    case AttributeKind::kTensors:
      return 'T';
    case AttributeKind::kGraphs:
      return 'G';
    case AttributeKind::kSparseTensor:
      return 'p';
    case AttributeKind::kType:
      return 'y';
    default:
      return '?';
  }
}

/// The types that a formal parameter takes.
TypeSet allowed(const OperatorSchema& schema, const FormalParameter& formal) {
  if (formal.variable.empty()) return formal.types;
  const auto found = schema.types.find(formal.variable);
  return found == schema.types.end() ? 0 : found->second;
}

const FormalParameter* formal_at(const std::vector<FormalParameter>& all, size_t i) {
  if (i < all.size()) return &all[i];
  return !all.empty() && all.back().variadic ? &all.back() : nullptr;
}

/// The fault of the numbers of operands and results or of the attributes; "" if there is none.
std::string form_problem(const OperatorSchema& schema, const Node& node) {
  if (schema.deprecated) return "the operator is deprecated";
  if (node.inputs.size() < schema.least_inputs || node.outputs.size() < schema.least_outputs)
    return str("has ", node.inputs.size(), " inputs and ", node.outputs.size(),
               " outputs, expected at least ", schema.least_inputs, " and ", schema.least_outputs);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const FormalParameter* formal = formal_at(schema.inputs, i);
    if (!formal) return str("has ", node.inputs.size(), " inputs, at most ", schema.inputs.size());
    if (node.inputs[i].empty() && !formal->optional && i < schema.least_inputs)
      return str("input ", i, " is missing");
  }
  if (!node.outputs.empty() && !formal_at(schema.outputs, node.outputs.size() - 1))
    return str("has ", node.outputs.size(), " outputs, at most ", schema.outputs.size());
  for (const Attribute& given : node.attributes) {
    const auto known = std::ranges::find_if(
        schema.attributes, [&](const FormalAttribute& each) { return each.name == given.name; });
    if (known == schema.attributes.end())
      return str("has the attribute '", given.name, "', which the operator does not have");
    if (given.reference.empty() && given.kind != AttributeKind::kUndefined &&
        letter_of(given.kind) != known->kind)
      return str("the attribute '", given.name, "' is of another kind");
  }
  for (const FormalAttribute& each : schema.attributes)
    if (each.required && !node.find(each.name))
      return str("the attribute '", std::string(each.name), "' is missing");
  return "";
}

/// The fault of the types of operands; "" if there is none. Collects the types of variables.
std::string type_problem(const OperatorSchema& schema, const Node& node,
                         const std::vector<KnownValue>& inputs,
                         std::map<std::string_view, TypeSet>& bound, TypeSet* wrong) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TypeSet type = inputs[i].type;
    const FormalParameter* formal = formal_at(schema.inputs, i);
    if (type == 0 || !formal || node.inputs[i].empty()) continue;
    if ((allowed(schema, *formal) & type) == 0) {
      *wrong = type;
      return str("input ", i, " is ", text_of_types(type), ", which the operator does not take");
    }
    if (formal->variable.empty() || formal->heterogeneous) continue;
    const auto [at, first] = bound.emplace(formal->variable, type);
    if (!first && at->second != type)
      return str("input ", i, " is ", text_of_types(type), ", another one is ",
                 text_of_types(at->second));
  }
  return "";
}

std::string prefix_of(const Node& node) {
  return str("node '", node.name, "' (", node.op_type, "): ");
}

class Validator {
 public:
  explicit Validator(const Model& model) : model_(model) {
    const auto version = model.opsets.find("");
    opset_ = version == model.opsets.end() ? 0 : version->second;
    for (const auto& function : model.functions)
      functions_.insert({function.domain, function.name});
  }

  std::vector<ValidityProblem> run() {
    if (model_.graph.name.empty()) add("the graph has no name");
    if (opset_ > newest_schema_opset())
      add(str("opset ", opset_, " is newer than ", newest_schema_opset()));
    else if (model_.graph.nodes.empty() || opset_ > 0)
      graph(model_.graph, nullptr);
    return std::move(problems_);
  }

 private:
  struct Scope {
    const Scope* outer = nullptr;
    std::unordered_map<std::string, KnownValue> values = {};

    const KnownValue* find(const std::string& name) const {
      const auto found = values.find(name);
      if (found != values.end()) return &found->second;
      return outer ? outer->find(name) : nullptr;
    }
  };

  void add(std::string what, const Node* node = nullptr) {
    problems_.push_back({std::move(what), node ? node->source : "", "", 0});
  }

  static bool is_complete(const ValueType& type) {
    switch (type.kind) {
      case ValueType::Kind::kUnknown:
        return false;
      case ValueType::Kind::kTensor:
        return type.dtype && type.shape;
      default:
        return true;
    }
  }

  /// Returns the types of the outputs.
  std::vector<KnownValue> graph(const Graph& g, const Scope* outer) {
    Scope scope{outer};
    const bool main = outer == nullptr;
    for (const ValueInfo& input : g.inputs) {
      if (!scope.values.emplace(input.name, known_value(input.type)).second)
        add(str("two inputs are called '", input.name, "'"));
      if (!is_complete(input.type))
        add(str("the input '", input.name, "' of the graph '", g.name, "' has no type or shape"));
    }
    std::unordered_set<std::string> stored;
    for (const auto& tensor : g.initializers) {
      if (!stored.insert(tensor.name).second)
        add(str("two initializers are called '", tensor.name, "'"));
      const auto declared = scope.values.find(tensor.name);
      if (declared != scope.values.end() && declared->second.type != 0 &&
          declared->second.type != tensor_type(tensor.dtype))
        add(str("the initializer '", tensor.name, "' has another type than the input"));
      // An input is not a constant, as a caller may give another value.
      if (declared == scope.values.end()) scope.values[tensor.name] = known_value(tensor);
    }
    for (const auto& [name, sparse] : g.sparse_initializers)
      scope.values[name] = {tensor_type(sparse.values.dtype),
                            static_cast<int64_t>(sparse.shape.size()), nullptr};
    for (const Node& each : g.nodes) node(each, scope);
    std::vector<KnownValue> out;
    std::unordered_set<std::string> names;
    for (const ValueInfo& output : g.outputs) {
      const KnownValue* value = scope.find(output.name);
      const KnownValue declared = known_value(output.type);
      if (!value)
        add(str("no node computes the output '", output.name, "'"));
      else if (value->type != 0 && declared.type != 0 && value->type != declared.type)
        add(str("the output '", output.name, "' is ", text_of_types(value->type), ", declared as ",
                text_of_types(declared.type)));
      else if (value->rank && declared.rank && *value->rank != *declared.rank)
        add(str("the output '", output.name, "' has ", *value->rank, " axes, declared are ",
                *declared.rank));
      if (!names.insert(output.name).second) add(str("two outputs are called '", output.name, "'"));
      if (main && !is_complete(output.type))
        add(str("the output '", output.name, "' has no type or shape"));
      out.push_back(value && value->type != 0 ? *value : declared);
    }
    return out;
  }

  void node(const Node& node, Scope& scope) {
    if (!node.name.empty() && !names_.insert(node.name).second)
      add(str("two nodes are called '", node.name, "'"), &node);
    std::vector<KnownValue> inputs;
    for (const std::string& name : node.inputs) {
      const KnownValue* value = name.empty() ? nullptr : scope.find(name);
      if (!name.empty() && !value)
        add(str(prefix_of(node), "reads '", name, "', which nothing computes before it"), &node);
      inputs.push_back(value ? *value : KnownValue{});
    }
    std::vector<KnownValue> inner;  // outputs of the first subgraph
    for (const Attribute& attribute : node.attributes)
      for (const auto& body : attribute.graphs) {
        const auto made = graph(*body, &scope);
        if (inner.empty()) inner = made;
      }
    std::vector<KnownValue> outputs(node.outputs.size());
    const bool is_standard = (node.domain.empty() || node.domain == "ai.onnx") &&
                             !functions_.contains({node.domain, node.op_type});
    if (is_standard) outputs = standard_node(node, inputs, inner);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      if (scope.find(node.outputs[i]))
        add(str(prefix_of(node), "computes '", node.outputs[i], "', which is defined already"),
            &node);
      scope.values[node.outputs[i]] = outputs[i];
    }
  }

  std::vector<KnownValue> standard_node(const Node& node, const std::vector<KnownValue>& inputs,
                                        const std::vector<KnownValue>& inner) {
    std::vector<KnownValue> out(node.outputs.size());
    const OperatorSchema* schema = find_schema(node.op_type, opset_);
    std::map<std::string_view, TypeSet> bound;
    TypeSet wrong = 0;
    std::string why =
        schema ? form_problem(*schema, node) : str("the operator does not exist at opset ", opset_);
    if (schema && why.empty()) why = type_problem(*schema, node, inputs, bound, &wrong);
    if (!why.empty()) {
      problem(node, inputs, why, wrong);
      // The types of its results are those of the version that takes its operands.
      for (const OperatorSchema& later : schemas_of(node.op_type))
        if (later.since > opset_ && problem_at(later, node, inputs).empty()) {
          schema = &later;
          bound.clear();
          type_problem(later, node, inputs, bound, &wrong);
          break;
        }
    }
    if (const std::string rank = rank_problem(node, inputs); !rank.empty())
      add(prefix_of(node) + rank, &node);
    if (!schema) return out;
    const bool of_body = node.op_type == "If" || node.op_type == "Loop" || node.op_type == "Scan";
    for (size_t i = 0; i < out.size(); ++i) {
      if (of_body) {
        // The first output of a Loop's body is its condition.
        const size_t at = node.op_type == "Loop" ? i + 1 : i;
        if (at < inner.size()) out[i].type = inner[at].type;
        if (node.op_type == "If" && at < inner.size()) out[i].rank = inner[at].rank;
        continue;
      }
      out[i].type = type_of_result(*schema, node, inputs, bound, i);
      out[i].rank = result_rank(node, inputs, i);
    }
    return out;
  }

  static TypeSet type_of_result(const OperatorSchema& schema, const Node& node,
                                const std::vector<KnownValue>& inputs,
                                const std::map<std::string_view, TypeSet>& bound, size_t i) {
    const FormalParameter* formal = formal_at(schema.outputs, i);
    if (!formal) return 0;
    if (const auto known = bound.find(formal->variable); known != bound.end()) return known->second;
    const TypeSet types = allowed(schema, *formal);
    if ((types & (types - 1)) == 0) return types;
    return i == 0 ? result_type(node, inputs) : 0;
  }

  static std::string problem_at(const OperatorSchema& schema, const Node& node,
                                const std::vector<KnownValue>& inputs) {
    std::map<std::string_view, TypeSet> bound;
    TypeSet wrong = 0;
    std::string why = form_problem(schema, node);
    return why.empty() ? type_problem(schema, node, inputs, bound, &wrong) : why;
  }

  void problem(const Node& node, const std::vector<KnownValue>& inputs, const std::string& why,
               TypeSet wrong) {
    ValidityProblem out{prefix_of(node) + why, node.source, node.op_type, 0};
    for (int i = 0; i < kDTypeCount; ++i)
      if (wrong == tensor_type(static_cast<DType>(i)))
        out.subject += " of " + text(static_cast<DType>(i));
    for (const OperatorSchema& later : schemas_of(node.op_type))
      if (out.opset == 0 && later.since > opset_ && problem_at(later, node, inputs).empty())
        out.opset = later.since;
    // A version that takes the types may need another form, which the writer gives it.
    for (const OperatorSchema& later : schemas_of(node.op_type)) {
      std::map<std::string_view, TypeSet> bound;
      TypeSet still = 0;
      if (out.opset == 0 && wrong != 0 && later.since > opset_ && !later.deprecated &&
          type_problem(later, node, inputs, bound, &still).empty())
        out.opset = later.since;
    }
    if (wrong != 0) out.what += str(" at opset ", opset_);
    problems_.push_back(std::move(out));
  }

  const Model& model_;
  int64_t opset_ = 0;
  std::set<std::pair<std::string, std::string>> functions_;
  std::unordered_set<std::string> names_;
  std::vector<ValidityProblem> problems_;
};

}  // namespace

std::vector<ValidityProblem> validity_problems(const Model& model) {
  return Validator(model).run();
}

int64_t ir_version_of(int64_t opset) {
  return opset >= 25   ? 12
         : opset >= 23 ? 11
         : opset >= 21 ? 10
         : opset >= 19 ? 9
         : opset >= 15 ? 8
                       : 7;
}

int64_t needed_opset(const std::vector<ValidityProblem>& problems) {
  int64_t out = 0;
  for (const ValidityProblem& each : problems) out = std::max(out, each.opset);
  return out;
}

void require_valid(const Model& model, const std::string& file) {
  const auto problems = validity_problems(model);
  if (problems.empty()) return;
  const ValidityProblem& first = problems[0];
  fail(ErrorCode::kModel, first.source.empty() ? file : first.source, ": would be written as ",
       "invalid ONNX: ", first.what,
       problems.size() > 1 ? str(" (and ", problems.size() - 1, " more)") : "");
}

}  // namespace paddle::onnx
