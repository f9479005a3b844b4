#include "compiler/passes/pattern_rewriter.h"

#include <algorithm>
#include <functional>

#include "compiler/passes/passes.h"

namespace paddle::passes {

using ir::Operation;
using ir::Value;

void PatternRewriter::run() {
  consumers_.clear();
  for (const auto& o : function_.body.operations) note_uses(*o);
  for (const Value* v : function_.body.results) consumers_[v].push_back(nullptr);
  for (auto it = function_.body.operations.begin(); it != function_.body.operations.end();) {
    next_ = std::next(it);
    visit(it);
    it = next_;
  }
  remove_dead_code(function_);
}

void PatternRewriter::note_uses(Operation& consumer) {
  ir::for_each_read(consumer, [&](const Value* v) { consumers_[v].push_back(&consumer); });
}

void PatternRewriter::forget_uses(const Operation& consumer) {
  ir::for_each_read(consumer, [&](const Value* v) { std::erase(consumers_[v], &consumer); });
}

void PatternRewriter::erase(Iterator at) {
  forget_uses(**at);
  if (next_ == at) ++next_;
  function_.body.operations.erase(at);
}

Operation* PatternRewriter::only_consumer(const Value* v) const {
  const auto it = consumers_.find(v);
  if (it == consumers_.end() || it->second.size() != 1 || !it->second[0]) return nullptr;
  return it->second[0]->regions.empty() ? it->second[0] : nullptr;
}

void PatternRewriter::insert(Iterator before, const Operation& like, const Op& op,
                             std::vector<Value*> operands, Attrs attrs, Value* result) {
  auto operation = std::make_unique<Operation>();
  operation->op = &op;
  operation->operands = std::move(operands);
  operation->attrs = std::move(attrs);
  operation->results = {result};
  operation->location = like.location;
  operation->sequence = like.sequence;
  result->producer = operation.get();
  result->index = 0;
  note_uses(*operation);
  function_.body.operations.insert(before, std::move(operation));
}

void PatternRewriter::replace(Value* from, Value* to) {
  ir::annotate(*to, *from);
  std::vector<Operation*> consumers = std::move(consumers_[from]);
  consumers_.erase(from);
  const std::function<void(Operation&)> change = [&](Operation& o) {
    std::replace(o.operands.begin(), o.operands.end(), from, to);
    for (const auto& region : o.regions) {
      for (const auto& inner : region->operations) change(*inner);
      std::replace(region->results.begin(), region->results.end(), from, to);
    }
  };
  for (Operation* consumer : consumers) {
    if (consumer) change(*consumer);
    consumers_[to].push_back(consumer);
  }
  std::replace(function_.body.results.begin(), function_.body.results.end(), from, to);
}

}  // namespace paddle::passes
