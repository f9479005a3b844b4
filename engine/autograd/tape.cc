// The tape: each tensor that requires a gradient refers to the call that produced it, which holds
// its operands. Values are immutable, so later writes cannot change them.

#include <atomic>
#include <map>
#include <set>

#include "autograd/autograd.h"
#include "autograd/history.h"
#include "autograd/pending.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"

namespace paddle::autograd {
namespace {

struct Node : std::enable_shared_from_this<Node> {
  const Op* op = nullptr;  ///< null for a leaf
  Attrs attrs;
  Tensors operands;
  Tensors results;  ///< detached, so that no node refers to itself
  int64_t sequence = 0;
  std::string location;  ///< source location in the model, if known
  Tensor gradient;       ///< of a leaf: what backward_to_leaves has added up
  CustomVjp vjp;         ///< of results that with_vjp gave
  std::map<int64_t, std::pair<size_t, GradientHook>> hooks;  ///< with the index of a result
};

struct Record : Content {
  std::shared_ptr<Node> node;
  size_t index = 0;
};

thread_local bool recording = true;

int64_t next_sequence() {
  static std::atomic<int64_t> counter{0};
  return counter++;
}

Tensor recorded(const Tensor& value, const std::shared_ptr<Node>& node, size_t index) {
  auto record = std::make_shared<Record>();
  record->node = node;
  record->index = index;
  Tensor out = value.fresh_cell();
  out.set_record(std::move(record));
  return out;
}

class TapeHistory final : public History {
 public:
  Key key(const Tensor& tensor) override {
    const auto* record = static_cast<const Record*>(tensor.record().get());
    return record ? Key{record->node.get(), record->index, record->node->op == nullptr} : Key{};
  }
  RecordedCall call(const Key& key) override {
    auto node = const_cast<Node*>(static_cast<const Node*>(key.node))->shared_from_this();
    RecordedCall out{node->op,
                     &node->attrs,
                     node->operands,
                     {},
                     node->location,
                     nullptr,
                     node->vjp ? &node->vjp : nullptr};
    for (size_t i = 0; i < node->results.size(); ++i)
      out.results.push_back(recorded(node->results[i], node, i));
    return out;
  }
  int64_t sequence(const Key& key) override { return static_cast<const Node*>(key.node)->sequence; }
  std::vector<GradientHook> hooks(const Key& key) override {
    std::vector<GradientHook> out;
    if (!key.node) return out;
    for (const auto& [number, hook] : static_cast<const Node*>(key.node)->hooks)
      if (hook.first == key.index) out.push_back(hook.second);
    return out;
  }
};

}  // namespace

std::unique_ptr<History> tape_history() { return std::make_unique<TapeHistory>(); }

bool is_recording() { return recording; }
void set_recording(bool value) { recording = value; }

NoGradScope::NoGradScope() : previous_(recording) { recording = false; }
NoGradScope::~NoGradScope() { recording = previous_; }

Tensor variable(const Tensor& value) {
  if (!value.is_concrete()) return value;
  auto node = std::make_shared<Node>();
  node->sequence = next_sequence();
  return recorded(value, node, 0);
}

namespace {

/// The node of a leaf; kUsage for other tensors.
Node& leaf_node(const Tensor& tensor) {
  const auto* record = static_cast<const Record*>(tensor.record().get());
  if (!record || record->node->op)
    fail(ErrorCode::kUsage, "a gradient is kept by variables only, not by results and constants");
  return *record->node;
}

/// The leaves that a tensor depends on, in the order in which they were made.
std::vector<Tensor> leaves_of(const Tensors& outputs) {
  std::map<int64_t, Tensor> leaves;
  std::set<const Node*> seen;
  std::vector<Tensor> stack(outputs.begin(), outputs.end());
  while (!stack.empty()) {
    const Tensor tensor = std::move(stack.back());
    stack.pop_back();
    const auto* record =
        tensor.defined() ? static_cast<const Record*>(tensor.record().get()) : nullptr;
    if (!record || !seen.insert(record->node.get()).second) continue;
    if (!record->node->op) leaves.emplace(record->node->sequence, tensor);
    for (const Tensor& operand : record->node->operands) stack.push_back(operand);
  }
  std::vector<Tensor> out;
  for (auto& [sequence, leaf] : leaves) out.push_back(std::move(leaf));
  return out;
}

bool wants_record(const Op& op, const Tensors& operands) {
  if (!recording || op.has(kStopGradient)) return false;
  for (const Tensor& t : operands)
    if (t.defined() && t.requires_grad() && is_differentiable(t.dtype())) return true;
  return false;
}

/// The results with a record of how they came about.
Tensors record_call(const Op& op, const Tensors& operands, const Attrs& attrs, Tensors results) {
  auto node = std::make_shared<Node>();
  node->results = std::move(results);
  node->op = &op;
  node->attrs = attrs;
  node->operands.reserve(operands.size());
  for (const Tensor& t : operands) node->operands.push_back(t.defined() ? t.fresh_cell() : t);
  node->sequence = next_sequence();
  node->location = ir::LocationScope::current();
  Tensors out;
  out.reserve(node->results.size());
  for (size_t i = 0; i < node->results.size(); ++i) {
    const Tensor& result = node->results[i];
    out.push_back(is_differentiable(result.dtype()) ? recorded(result, node, i) : result);
  }
  return out;
}

}  // namespace

namespace {

const Record& record_of(const Tensor& tensor) {
  const auto* record = dynamic_cast<const Record*>(tensor.record().get());
  if (!record) fail(ErrorCode::kUsage, "a hook needs a tensor that requires a gradient");
  return *record;
}

}  // namespace

int64_t add_hook(const Tensor& tensor, GradientHook hook) {
  const Record& record = record_of(tensor);
  const int64_t number = next_sequence();
  record.node->hooks.emplace(number, std::pair(record.index, std::move(hook)));
  return number;
}

void remove_hook(const Tensor& tensor, int64_t number) {
  record_of(tensor).node->hooks.erase(number);
}

bool has_hooks(const Tensor& leaf) { return !record_of(leaf).node->hooks.empty(); }

Tensors with_vjp(const Tensors& results, const Tensors& operands, const CustomVjp& vjp) {
  static const Op& op = get_op("assign");
  if (!wants_record(op, operands)) return results;
  Tensors plain;
  plain.reserve(results.size());
  for (const Tensor& result : results) plain.emplace_back(result.type(), result.content());
  Tensors out = record_call(op, operands, default_attrs(op), std::move(plain));
  for (const Tensor& each : out)
    if (each.requires_grad()) static_cast<const Record*>(each.record().get())->node->vjp = vjp;
  return out;
}

std::shared_ptr<Content> pending_record() {
  static const Op& op = get_op("assign");
  auto record = std::make_shared<Record>();
  record->node = std::make_shared<Node>();
  record->node->op = &op;
  record->node->vjp = [](const Tensors&, const std::vector<bool>&) { return Tensors(); };
  return record;
}

void complete_record(Content& pending, const Tensor& value) {
  const auto* record = static_cast<const Record*>(value.record().get());
  if (!record) return;
  static_cast<Record&>(pending).node = record->node;
  static_cast<Record&>(pending).index = record->index;
}

bool is_leaf(const Tensor& value) {
  const auto* record = static_cast<const Record*>(value.record().get());
  return record && !record->node->op;
}

void backward_to_leaves(const Tensors& outputs, const Tensors& cotangents) {
  const std::vector<Tensor> leaves = leaves_of(outputs);
  const NoGradScope scope;
  const Tensors gradients = grad(outputs, leaves, cotangents);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!gradients[i].defined()) continue;
    Tensor& sum = leaf_node(leaves[i]).gradient;
    sum = sum.defined() ? sum + gradients[i] : gradients[i];
  }
}

Tensor leaf_gradient(const Tensor& leaf) { return leaf_node(leaf).gradient; }

void set_leaf_gradient(const Tensor& leaf, const Tensor& gradient) {
  leaf_node(leaf).gradient = gradient;
}

void set_leaf_value(const Tensor& leaf, const Tensor& value) {
  leaf_node(leaf);
  Tensor replaced(value.type(), value.content());
  replaced.set_record(leaf.record());
  leaf.assign(replaced);
}

Tensors Tape::apply(const OpCall& call) {
  const bool wanted = wants_record(call.op, call.operands);
  // An operation without a vjp rule is recorded as its decomposition.
  if (wanted && !call.op.def->vjp && call.op.def->decompose && !*call.op.def->no_gradient)
    return decompose(call);
  Interpreter& below = next();
  const auto apply_below = [&] {
    const ScopedInterpreter scope(below);
    return below.apply(call);
  };
  return wanted ? record_call(call.op, call.operands, call.attrs, apply_below()) : apply_below();
}

bool Tape::apply_known(const Op& op, const Tensors& operands, const Attrs& attrs,
                       Tensors& results) {
  const bool wanted = wants_record(op, operands);
  if (wanted && !op.def->vjp) return false;
  {
    Interpreter& below = next();
    const ScopedInterpreter scope(below);
    if (!below.apply_known(op, operands, attrs, results)) return false;
  }
  if (wanted) results = record_call(op, operands, attrs, std::move(results));
  return true;
}

}  // namespace paddle::autograd
