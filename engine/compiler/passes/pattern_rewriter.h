#pragma once
// Base of pattern passes: visits the operations of a function's body in order and lets a subclass
// replace them, while it tracks the uses of every value.

#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "ir/module.h"

namespace paddle::passes {

class PatternRewriter {
 public:
  explicit PatternRewriter(ir::Function& function) : function_(function) {}
  virtual ~PatternRewriter() = default;
  PatternRewriter(const PatternRewriter&) = delete;
  PatternRewriter& operator=(const PatternRewriter&) = delete;
  /// Visits every operation of the body, then removes dead code.
  void run();

 protected:
  using Iterator = std::list<std::unique_ptr<ir::Operation>>::iterator;

  virtual void visit(Iterator at) = 0;
  /// The single consumer of the value; null if there are others, or if it has regions.
  ir::Operation* only_consumer(const ir::Value* v) const;
  /// Inserts an operation that produces the existing value `result`, at the source location of
  /// `like`.
  void insert(Iterator before, const ir::Operation& like, const Op& op,
              std::vector<ir::Value*> operands, Attrs attrs, ir::Value* result);
  /// Replaces all uses of `from` by `to`, which gets its name unless it has one.
  void replace(ir::Value* from, ir::Value* to);
  /// Records the operands of `consumer` as uses; `forget_uses` before its operands change.
  void note_uses(ir::Operation& consumer);
  void forget_uses(const ir::Operation& consumer);
  void erase(Iterator at);

  ir::Function& function_;
  Iterator next_;  ///< the operation that is visited next

 private:
  std::unordered_map<const ir::Value*, std::vector<ir::Operation*>> consumers_;
};

}  // namespace paddle::passes
