#include "onnx/graph/partitions.h"

#include <algorithm>
#include <unordered_set>

#include "base/strict.h"
#include "formats/onnx/order.h"
#include "ir/tracer.h"
#include "onnx/graph/constant_folding.h"
#include "ops/call.h"
#include "runtime/execute.h"

namespace paddle::onnx {

using formats::onnx::Node;

namespace {

constexpr size_t kMaxVariants = 4;    // sections kept of one place, by the types that come
constexpr int kMaxMade = 16;          // sections made at one place in all
constexpr int kMaxUnused = 3;         // in graphs inside nodes, before one of them comes again
constexpr int kMaxFailures = 3;       // before a place without sections is left alone
constexpr int kFirstVisit = 2;        // at which a section is made in the model's graph
constexpr int kFirstVisitNested = 4;  // and in graphs inside nodes, which may turn a few times only

struct Found {
  const Value* value = nullptr;
  Origin origin = Origin::kRun;
};

Found find(const Scope& scope, const std::string& name) {
  for (const Scope* s = &scope; s; s = s->outer)
    if (const auto it = s->values.find(name); it != s->values.end()) {
      const auto origin = s->origins.find(name);
      return {&it->second, origin == s->origins.end() ? Origin::kRun : origin->second};
    }
  return {};
}

/// Values that make two sections differ by what they are, not only by their types.
bool same_known(const Value& a, const Value& b) {
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

bool draws(const Node& node) {
  return node.op_type.starts_with("Random") || node.op_type == "Bernoulli" ||
         node.op_type == "Multinomial" || node.op_type == "Dropout";
}

bool has_graphs(const Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(),
                     [](const auto& a) { return !a.graphs.empty(); });
}

/// True if one of the function's operations from `from` on draws random numbers.
bool draws(const ir::Function& function, size_t from) {
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

/// What a section was made for: one of the values that its place sees.
struct Sections::Given {
  Value::Kind kind = Value::Kind::kNone;
  TensorType type;  ///< of a tensor
  Value known;      ///< set if it follows from types

  static Given of(const Found& found) {
    Given out;
    out.kind = found.value->kind();
    if (out.kind == Value::Kind::kTensor) out.type = {found.value->dtype(), found.value->shape()};
    if (found.origin == Origin::kTypes) out.known = *found.value;
    return out;
  }
  bool is_input() const { return kind == Value::Kind::kTensor && known.is_none(); }
  bool fits(const Found& found) const {
    if (!found.value || found.value->kind() != kind) return false;
    if ((found.origin == Origin::kTypes) == known.is_none()) return false;
    if (!known.is_none()) return same_known(known, *found.value);
    return kind != Value::Kind::kTensor ||
           same_type(type, {found.value->dtype(), found.value->shape()});
  }
};

struct Sections::Section {
  std::vector<Given> given;  ///< one per name of the place
  size_t end = 0;            ///< the node after it; its first node if there is nothing to run
  std::unique_ptr<runtime::Executable> executable;
  std::vector<std::string> inputs, outputs;
  std::vector<std::pair<std::string, Value>> known;  ///< outputs that these types decide
  std::vector<Array> held;                           ///< inputs: outputs may be views of them
};

/// A node where a section may begin.
struct Sections::Place {
  std::vector<std::string> names;  ///< of values that nodes from here on may read; no constants
  std::deque<std::unique_ptr<Section>> sections;  ///< most recently used first
  int visits = 0, made = 0, failures = 0;
  bool used = false;  ///< one of them has come again
};

Sections::Sections(Evaluator& evaluator, const SessionOptions& options)
    : evaluator_(evaluator), options_(options), fewest_(options.mode == Mode::kSections ? 1 : 2) {}

Sections::~Sections() = default;

void Sections::note_internal(const Error& error) {
  if (internal_errors_are_fatal()) throw error;
  if (std::find(failures_.begin(), failures_.end(), error.what()) == failures_.end())
    failures_.emplace_back(error.what());
}

void Sections::mark_outputs(const Node& node, Scope& scope) {
  Origin origin = draws(node) || has_graphs(node) ? Origin::kRun : Origin::kConstants;
  for (const std::string& name : node.inputs)
    if (!name.empty()) origin = std::min(origin, find(scope, name).origin);
  if (node.op_type == "Shape" || node.op_type == "Size") origin = std::max(origin, Origin::kTypes);
  for (const std::string& name : node.outputs) {
    const auto it = scope.values.find(name);
    if (it == scope.values.end()) continue;
    const bool small = it->second.is_tensor() && it->second.dims().has_value();
    scope.origins[name] = origin == Origin::kTypes && !small ? Origin::kRun : origin;
  }
}

Sections::Place& Sections::place_at(const Nodes& nodes, size_t first, const Scope& scope) {
  auto& places = places_[nodes.data()];
  places.resize(nodes.size());
  std::unique_ptr<Place>& place = places[first];
  if (place) return *place;
  place = std::make_unique<Place>();
  // What is alive here of the graph's own, and what its nodes read of the graphs around it.
  std::unordered_set<std::string> names;
  for (const auto& [name, value] : scope.values) names.insert(name);
  if (scope.outer)
    for (size_t i = first; i < nodes.size(); ++i) add_reads(nodes[i], names);
  for (const std::string& name : names)
    if (const Found found = find(scope, name); found.value && found.origin != Origin::kConstants)
      place->names.push_back(name);
  std::sort(place->names.begin(), place->names.end());
  return *place;
}

bool Sections::matches(const Place& place, const Section& section, const Scope& scope) const {
  for (size_t i = 0; i < place.names.size(); ++i)
    if (!section.given[i].fits(find(scope, place.names[i]))) return false;
  return true;
}

size_t Sections::run(const Nodes& nodes, size_t first, const Ends& ends, Scope& scope) {
  Place& place = place_at(nodes, first, scope);
  if (place.failures >= kMaxFailures) return first;
  ++place.visits;
  for (auto it = place.sections.begin(); it != place.sections.end(); ++it) {
    if (!matches(place, **it, scope)) continue;
    std::rotate(place.sections.begin(), it, it + 1);
    place.used = true;
    Section& section = *place.sections.front();
    if (section.end > first) execute(section, first, ends, scope);
    return section.end;
  }
  const int needed = options_.mode == Mode::kSections ? 1
                     : scope.outer                    ? kFirstVisitNested
                                                      : kFirstVisit;
  const int most = scope.outer && !place.used ? kMaxUnused : kMaxMade;  // sizes may always differ
  if (place.visits < needed || place.made >= most) return first;
  ++place.made;
  place.sections.push_front(make(place, nodes, first, ends, scope));
  if (place.sections.size() > kMaxVariants) place.sections.pop_back();
  Section& section = *place.sections.front();
  if (section.end == first) {
    ++place.failures;
    return first;
  }
  place.failures = -kMaxMade;
  execute(section, first, ends, scope);
  return section.end;
}

size_t Sections::trace(const Nodes& nodes, size_t first, size_t end, const Ends& ends,
                       ir::Tracer& tracer, Scope& scope) {
  Folding folding;
  const InterpreterScope tracing(tracer), folds(folding);
  std::unordered_set<std::string> closed;  // sequences and the like, which a run gives
  for (const Scope* s = scope.outer; s; s = s->outer)
    for (const auto& [name, value] : s->values)
      if (!value.is_tensor() && !value.is_none() && find(scope, name).origin == Origin::kRun)
        closed.insert(name);
  size_t i = first;
  for (; i < end; ++i) {
    const Node& node = nodes[i];
    if (!closed.empty()) {
      std::unordered_set<std::string> reads;
      add_reads(node, reads);
      if (std::any_of(reads.begin(), reads.end(),
                      [&](const std::string& name) { return closed.count(name) > 0; }))
        break;
    }
    Values outputs;
    const size_t before = tracer.function().body.operations.size();
    try {
      outputs = evaluator_.run_node(node, scope);
    } catch (const Error& e) {
      if (e.code() == ErrorCode::kDevice) throw;
      if (e.code() == ErrorCode::kInternal) note_internal(e);
      break;  // one by one it may still run, or say better what is wrong
    }
    const auto fits = [](const Value& v) {
      return v.is_known() || (v.is_tensor() && is_constant(v.shape()));
    };
    if (outputs.size() < node.outputs.size() ||
        !std::all_of(outputs.begin(), outputs.end(), fits) || draws(tracer.function(), before))
      break;
    for (size_t k = 0; k < node.outputs.size(); ++k)
      evaluator_.set(scope, node.outputs[k], std::move(outputs[k]));
    for (const std::string& name : ends[i]) scope.values.erase(name);
  }
  return i;
}

std::unique_ptr<Sections::Section> Sections::make(const Place& place, const Nodes& nodes,
                                                  size_t first, const Ends& ends,
                                                  const Scope& scope) {
  auto section = std::make_unique<Section>();
  section->end = first;
  for (const std::string& name : place.names)
    section->given.push_back(Given::of(find(scope, name)));
  // First how far it goes; then again to there, with the inputs that are read.
  std::unordered_set<std::string> read;
  size_t end = nodes.size();
  std::shared_ptr<ir::Function> function;
  for (const bool last : {false, true}) {
    function = std::make_shared<ir::Function>(str("section_", made_));
    ir::Tracer tracer(*function);
    Scope inside;
    inside.outer = &scope;
    for (size_t i = 0; i < place.names.size(); ++i)
      if (section->given[i].is_input() && (!last || read.count(place.names[i]))) {
        inside.values[place.names[i]] =
            tracer.input({ir::PortKind::kValue, place.names[i]}, section->given[i].type);
        if (last) section->inputs.push_back(place.names[i]);
      }
    const Tensor random = tracer.input({ir::PortKind::kRandom, "random"}, {DType::kU64, {Dim(2)}});
    const RandomScope random_scope(random);
    end = trace(nodes, first, end, ends, tracer, inside);
    if (end < first + fewest_) return section;
    if (!last) {
      for (size_t i = first; i < end; ++i) add_reads(nodes[i], read);
      continue;
    }
    for (size_t i = first; i < end; ++i)
      for (const std::string& name : nodes[i].outputs) {
        const auto it = inside.values.find(name);
        if (name.empty() || it == inside.values.end()) continue;
        if (it->second.is_known()) {
          section->known.emplace_back(name, it->second);
        } else {
          section->outputs.push_back(name);
          tracer.output({ir::PortKind::kValue, name}, it->second.tensor());
        }
      }
    function->inputs.pop_back();  // nothing draws
    function->body.arguments.pop_back();
  }
  ++made_;
  if (function->operation_count() < static_cast<int64_t>(fewest_)) return section;
  try {
    section->executable = executable_of(function, options_);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kDevice) throw;
    if (e.code() == ErrorCode::kInternal) note_internal(e);
    return section;
  }
  section->end = end;
  return section;
}

void Sections::execute(Section& section, size_t first, const Ends& ends, Scope& scope) {
  section.held.clear();
  for (const std::string& name : section.inputs)
    section.held.push_back(scope.find(name)->tensor().array().contiguous());
  const std::vector<Array>* results = nullptr;
  try {
    if (flops_) *flops_ += section.executable->prepare(section.held).flops();
    results = &section.executable->run(section.held);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage) throw;
    fail(ErrorCode::kModel, e.message());  // the inputs fit: the file is to blame
  }
  const bool copied = scope.outer != nullptr;
  for (size_t i = 0; i < section.outputs.size(); ++i) {
    const Array& a = (*results)[i];
    evaluator_.set(scope, section.outputs[i], Value(Tensor(copied ? runtime::copied(a) : a)));
    scope.origins[section.outputs[i]] = Origin::kRun;
  }
  if (copied) section.held.clear();
  for (const auto& [name, value] : section.known) {
    evaluator_.set(scope, name, value);
    scope.origins[name] = Origin::kTypes;
  }
  for (size_t i = first; i < section.end; ++i)
    for (const std::string& name : ends[i]) scope.values.erase(name);
}

}  // namespace paddle::onnx
