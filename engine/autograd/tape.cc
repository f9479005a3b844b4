// The tape: each tensor that requires a gradient refers to the call that produced it, which holds
// its operands. Values are immutable, so later writes cannot change them.

#include <atomic>

#include "autograd/autograd.h"
#include "autograd/history.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/kernel.h"

namespace paddle::autograd {
namespace {

struct Node : std::enable_shared_from_this<Node> {
  const Op* op = nullptr;  ///< null for a leaf
  Attrs attrs;
  Tensors operands;
  Tensors results;  ///< detached, so that no node refers to itself
  int64_t sequence = 0;
  std::string location;  ///< source location in the model, if known
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
  Tensor out(value.type(), value.content());
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
    RecordedCall out{node->op, &node->attrs, node->operands, {}, node->location, nullptr};
    for (size_t i = 0; i < node->results.size(); ++i)
      out.results.push_back(recorded(node->results[i], node, i));
    return out;
  }
  int64_t sequence(const Key& key) override { return static_cast<const Node*>(key.node)->sequence; }
};

}  // namespace

std::unique_ptr<History> tape_history() { return std::make_unique<TapeHistory>(); }

NoGradScope::NoGradScope() : previous_(recording) { recording = false; }
NoGradScope::~NoGradScope() { recording = previous_; }

Tensor variable(const Tensor& value) {
  if (!value.is_concrete()) return value;
  auto node = std::make_shared<Node>();
  node->sequence = next_sequence();
  return recorded(value, node, 0);
}

Tensors Tape::apply(const OpCall& call) {
  bool wanted = recording && !call.op.has(kStopGradient);
  if (wanted) {
    wanted = false;
    for (const Tensor& t : call.operands)
      wanted = wanted || (t.defined() && t.requires_grad() && is_differentiable(t.dtype()));
  }
  if (!wanted) {
    Interpreter& below = next();
    const ScopedInterpreter scope(below);
    return below.apply(call);
  }
  // An operation without a vjp rule is recorded as its decomposition.
  if (!call.op.def->vjp && call.op.def->decompose && !*call.op.def->no_gradient)
    return decompose(call);

  auto node = std::make_shared<Node>();
  {
    Interpreter& below = next();
    const ScopedInterpreter scope(below);
    node->results = below.apply(call);
  }
  node->op = &call.op;
  node->attrs = call.attrs;
  for (const Tensor& t : call.operands) node->operands.push_back(t.defined() ? t.fresh_cell() : t);
  node->sequence = next_sequence();
  node->location = ir::LocationScope::current();
  Tensors out;
  for (size_t i = 0; i < node->results.size(); ++i) {
    const Tensor& result = node->results[i];
    out.push_back(is_differentiable(result.dtype()) ? recorded(result, node, i) : result);
  }
  return out;
}

}  // namespace paddle::autograd
