#include "onnx/graph/partitions.h"

#include <algorithm>
#include <unordered_set>

#include "base/strict.h"
#include "formats/onnx/order.h"
#include "ir/tracer.h"
#include "onnx/graph/constant_folding.h"
#include "onnx/graph/graph_format.h"
#include "onnx/operator_registry.h"
#include "ops/core/call.h"
#include "runtime/execute.h"

namespace paddle::onnx {

using formats::onnx::Node;

namespace {

constexpr size_t kMaxVariants = 4;      // partitions kept per site, one per set of guards
constexpr int kMaxCompilations = 16;    // per site
constexpr int kMaxUnusedNested = 3;     // in subgraphs, until one of them is reused
constexpr int kMaxFailures = 3;         // then the site is given up
constexpr int kCompileVisit = 2;        // visit at which a site of the main graph is compiled
constexpr int kCompileVisitNested = 4;  // and of a subgraph, which may run a few iterations only

struct ScopedValue {
  const Value* value = nullptr;
  Origin origin = Origin::kData;
};

ScopedValue find(const Scope& scope, const std::string& name) {
  for (const Scope* s = &scope; s; s = s->outer)
    if (const auto it = s->values.find(name); it != s->values.end()) {
      const auto origin = s->origins.find(name);
      return {&it->second, origin == s->origins.end() ? Origin::kData : origin->second};
    }
  return {};
}

/// Constants that partitions are specialized on are compared by value (or identity), not by type.
bool same_constant(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is_tensor() && a.dtype() == b.dtype() && a.is_scalar() == b.is_scalar()) {
    const auto left = a.dims(), right = b.dims();
    if (left && right)
      return left->size() == right->size() &&
             std::equal(left->begin(), left->end(), right->begin(),
                        [](const Dim& x, const Dim& y) { return x.same(y); });
    return a.tensor().is_same_cell(b.tensor());
  }
  return a.is_none();
}

/// True if an operation at index `from` or later draws random numbers.
bool is_random(const ir::Function& function, size_t from) {
  bool found = false;
  const auto visit = [&](const ir::Operation& o) { found = found || o.op->has(kRandom); };
  auto it = function.body.operations.rbegin();
  for (size_t i = function.body.operations.size(); i > from; --i, ++it) {
    visit(**it);
    for (const auto& region : (*it)->regions) ir::for_each_operation(*region, visit);
  }
  return found;
}

}  // namespace

/// A value that a partition is specialized on: its type, or its content if that follows from types.
struct Partitions::Guard {
  Value::Kind kind = Value::Kind::kNone;
  TensorType type;  ///< if it is a tensor
  Value constant;   ///< set if it follows from types

  static Guard of(const ScopedValue& found) {
    Guard out;
    out.kind = found.value->kind();
    if (out.kind == Value::Kind::kTensor) out.type = {found.value->dtype(), found.value->shape()};
    if (found.origin == Origin::kTypes) out.constant = *found.value;
    return out;
  }
  bool is_input() const { return kind == Value::Kind::kTensor && constant.is_none(); }
  bool matches(const ScopedValue& found) const {
    if (!found.value || found.value->kind() != kind) return false;
    if ((found.origin == Origin::kTypes) == constant.is_none()) return false;
    if (!constant.is_none()) return same_constant(constant, *found.value);
    return kind != Value::Kind::kTensor ||
           same_type(type, {found.value->dtype(), found.value->shape()});
  }
};

struct Partitions::Partition {
  std::vector<Guard> guards;  ///< one per name of the site
  size_t end = 0;             ///< index after the last node; `first` if nothing was compiled
  std::unique_ptr<runtime::Executable> executable;
  std::vector<std::string> inputs, outputs;
  std::vector<std::pair<std::string, Value>> constant;  ///< outputs that follow from the guards
  std::vector<Array> bound_inputs;  ///< kept alive: outputs may be views of them
};

/// A node where a partition may start.
struct Partitions::Site {
  /// Live values that nodes from here on may read, without constants.
  std::vector<std::string> names;
  std::deque<std::unique_ptr<Partition>> partitions;  ///< most recently used first
  int visits = 0, compilations = 0, failures = 0;
  bool used = false;  ///< a partition was reused
};

Partitions::Partitions(Evaluator& evaluator, const SessionOptions& options)
    : evaluator_(evaluator),
      options_(options),
      min_nodes_(options.mode == Mode::kPartitions ? 1 : 2) {}

Partitions::~Partitions() = default;

void Partitions::note_internal(const Error& error) {
  if (internal_errors_are_fatal()) throw error;
  if (std::find(failures_.begin(), failures_.end(), error.what()) == failures_.end())
    failures_.emplace_back(error.what());
}

void Partitions::mark_outputs(const Node& node, Scope& scope) {
  Origin origin =
      is_random(node) || formats::onnx::has_graphs(node) ? Origin::kData : Origin::kConstants;
  for (const std::string& name : node.inputs)
    if (!name.empty()) origin = std::min(origin, find(scope, name).origin);
  const GraphFormat* format = added_format(node.domain);
  const bool reads_types = format ? format->properties(node).reads_types_only
                                  : node.op_type == "Shape" || node.op_type == "Size";
  if (reads_types) origin = std::max(origin, Origin::kTypes);
  for (const std::string& name : node.outputs) {
    const auto it = scope.values.find(name);
    if (it == scope.values.end()) continue;
    const bool small = it->second.is_tensor() && it->second.dims().has_value();
    scope.origins[name] = origin == Origin::kTypes && !small ? Origin::kData : origin;
  }
}

Partitions::Site& Partitions::site_at(const Nodes& nodes, size_t first, const Scope& scope) {
  auto& sites = sites_[nodes.data()];
  sites.resize(nodes.size());
  std::unique_ptr<Site>& site = sites[first];
  if (site) return *site;
  site = std::make_unique<Site>();
  // Live values of this graph, and values of enclosing graphs that its nodes read.
  std::unordered_set<std::string> names;
  for (const auto& [name, value] : scope.values) names.insert(name);
  if (scope.outer)
    for (size_t i = first; i < nodes.size(); ++i) add_reads(nodes[i], names);
  for (const std::string& name : names)
    if (const ScopedValue found = find(scope, name);
        found.value && found.origin != Origin::kConstants)
      site->names.push_back(name);
  std::sort(site->names.begin(), site->names.end());
  return *site;
}

bool Partitions::matches(const Site& site, const Partition& partition, const Scope& scope) const {
  for (size_t i = 0; i < site.names.size(); ++i)
    if (!partition.guards[i].matches(find(scope, site.names[i]))) return false;
  return true;
}

size_t Partitions::run(const Nodes& nodes, size_t first, const LastUses& last_uses, Scope& scope) {
  Site& site = site_at(nodes, first, scope);
  if (site.failures >= kMaxFailures) return first;
  ++site.visits;
  for (auto it = site.partitions.begin(); it != site.partitions.end(); ++it) {
    if (!matches(site, **it, scope)) continue;
    std::rotate(site.partitions.begin(), it, it + 1);
    site.used = true;
    Partition& partition = *site.partitions.front();
    if (partition.end > first) execute(partition, first, last_uses, scope);
    return partition.end;
  }
  const int needed = options_.mode == Mode::kPartitions ? 1
                     : scope.outer                      ? kCompileVisitNested
                                                        : kCompileVisit;
  // In a loop body, sizes may differ in every iteration.
  const int most = scope.outer && !site.used ? kMaxUnusedNested : kMaxCompilations;
  if (site.visits < needed || site.compilations >= most) return first;
  ++site.compilations;
  site.partitions.push_front(make(site, nodes, first, last_uses, scope));
  if (site.partitions.size() > kMaxVariants) site.partitions.pop_back();
  Partition& partition = *site.partitions.front();
  if (partition.end == first) {
    ++site.failures;
    return first;
  }
  site.failures = -kMaxCompilations;
  execute(partition, first, last_uses, scope);
  return partition.end;
}

size_t Partitions::trace(const Nodes& nodes, size_t first, size_t end, const LastUses& last_uses,
                         ir::Tracer& tracer, Scope& scope) {
  ConstantFolder folder;
  const InterpreterScope tracing(tracer), folder_scope(folder);
  std::unordered_set<std::string> opaque;  // sequences and other values that cannot be traced
  for (const Scope* s = scope.outer; s; s = s->outer)
    for (const auto& [name, value] : s->values)
      if (!value.is_tensor() && !value.is_none() && find(scope, name).origin == Origin::kData)
        opaque.insert(name);
  size_t i = first;
  for (; i < end; ++i) {
    const Node& node = nodes[i];
    if (!opaque.empty()) {
      std::unordered_set<std::string> reads;
      add_reads(node, reads);
      if (std::any_of(reads.begin(), reads.end(),
                      [&](const std::string& name) { return opaque.count(name) > 0; }))
        break;
    }
    Values outputs;
    const size_t before = tracer.function().body.operations.size();
    try {
      outputs = evaluator_.run_node(node, scope);
    } catch (const Error& e) {
      if (e.code() == ErrorCode::kDevice) throw;
      if (e.code() == ErrorCode::kInternal) note_internal(e);
      break;  // the eager path may still succeed, or report a better error
    }
    const auto matches = [](const Value& v) {
      return v.is_concrete() || (v.is_tensor() && is_constant(v.shape()));
    };
    if (outputs.size() < node.outputs.size() ||
        !std::all_of(outputs.begin(), outputs.end(), matches) ||
        is_random(tracer.function(), before))
      break;
    for (size_t k = 0; k < node.outputs.size(); ++k)
      evaluator_.set(scope, node.outputs[k], std::move(outputs[k]));
    for (const std::string& name : last_uses[i]) scope.values.erase(name);
  }
  return i;
}

std::unique_ptr<Partitions::Partition> Partitions::make(const Site& site, const Nodes& nodes,
                                                        size_t first, const LastUses& last_uses,
                                                        const Scope& scope) {
  auto partition = std::make_unique<Partition>();
  partition->end = first;
  for (const std::string& name : site.names)
    partition->guards.push_back(Guard::of(find(scope, name)));
  // The first pass finds the end of the partition, the second one traces it with the inputs it
  // reads.
  std::unordered_set<std::string> read;
  size_t end = nodes.size();
  std::shared_ptr<ir::Function> function;
  for (const bool last : {false, true}) {
    function =
        std::make_shared<ir::Function>(str("section_", function_count_), options_.compile.target);
    ir::Tracer tracer(*function);
    Scope inside;
    inside.outer = &scope;
    for (size_t i = 0; i < site.names.size(); ++i)
      if (partition->guards[i].is_input() && (!last || read.count(site.names[i]))) {
        inside.values[site.names[i]] =
            tracer.input({ir::PortKind::kValue, site.names[i]}, partition->guards[i].type);
        if (last) partition->inputs.push_back(site.names[i]);
      }
    const Tensor random = tracer.input({ir::PortKind::kRandom, "random"}, {DType::kU64, {Dim(2)}});
    const RandomScope random_scope(random);
    end = trace(nodes, first, end, last_uses, tracer, inside);
    if (end < first + min_nodes_) return partition;
    if (!last) {
      for (size_t i = first; i < end; ++i) add_reads(nodes[i], read);
      continue;
    }
    for (size_t i = first; i < end; ++i)
      for (const std::string& name : nodes[i].outputs) {
        const auto it = inside.values.find(name);
        if (name.empty() || it == inside.values.end()) continue;
        if (it->second.is_concrete()) {
          partition->constant.emplace_back(name, it->second);
        } else {
          partition->outputs.push_back(name);
          tracer.output({ir::PortKind::kValue, name}, it->second.tensor());
        }
      }
    function->inputs.pop_back();  // drop the random state: nothing uses it
    function->body.arguments.pop_back();
  }
  ++function_count_;
  if (function->operation_count() < static_cast<int64_t>(min_nodes_)) return partition;
  try {
    partition->executable = make_executable(function, options_);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kDevice) throw;
    if (e.code() == ErrorCode::kInternal) note_internal(e);
    return partition;
  }
  partition->end = end;
  return partition;
}

void Partitions::execute(Partition& partition, size_t first, const LastUses& last_uses,
                         Scope& scope) {
  partition.bound_inputs.clear();
  for (const std::string& name : partition.inputs)
    partition.bound_inputs.push_back(scope.find(name)->tensor().array().contiguous());
  const std::vector<Array>* results = nullptr;
  try {
    if (flops_) *flops_ += partition.executable->prepare(partition.bound_inputs).flops();
    results = &partition.executable->run(partition.bound_inputs);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage) throw;
    fail(ErrorCode::kModel, e.message());  // the inputs match the guards, so the file is at fault
  }
  const bool copied = scope.outer != nullptr;
  for (size_t i = 0; i < partition.outputs.size(); ++i) {
    const Array& a = (*results)[i];
    evaluator_.set(scope, partition.outputs[i], Value(Tensor(copied ? runtime::copied(a) : a)));
    scope.origins[partition.outputs[i]] = Origin::kData;
  }
  if (copied) partition.bound_inputs.clear();
  for (const auto& [name, value] : partition.constant) {
    evaluator_.set(scope, name, value);
    scope.origins[name] = Origin::kTypes;
  }
  for (size_t i = first; i < partition.end; ++i)
    for (const std::string& name : last_uses[i]) scope.values.erase(name);
}

}  // namespace paddle::onnx
