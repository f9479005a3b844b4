#pragma once
// Which integers of the data a program takes: labels below the number of classes of the loss, ids
// below the rows of an embedding. The loader checks samples against them, so that a label out of
// range is reported with its file and row and not from inside a kernel.

#include <string>
#include <vector>

#include "data/loader.h"
#include "ir/module.h"
#include "tensor/interpreter.h"

namespace paddle::train {

/// How a program uses the integers of the data.
struct IndexUse {
  /// One range per field: where several uses differ, what all of them take.
  std::vector<data::ValueRange> ranges;
  std::string label;    ///< the field that a loss takes as class numbers; "" if none does
  int64_t classes = 0;  ///< of that loss
  /// If that loss is a mean over the labels that are not this one.
  std::optional<int64_t> ignored;
};

/// Passes all calls on and notes those that use an input of the traced function as an index.
/// Install it above a tracer.
class IndexWatch final : public Interpreter {
 public:
  explicit IndexWatch(const ir::Function& function) : function_(function) {}
  Tensors apply(const OpCall& call) override;
  Tensors branch(const Tensor& condition, const TensorFn& then_fn,
                 const TensorFn& else_fn) override;
  Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
               int64_t max_steps) override;
  bool traces() const override { return true; }

  const IndexUse& use() const { return use_; }

 private:
  void note(const Tensor& index, const Dim& bound, std::optional<int64_t> also);
  void note_label(const OpCall& call, size_t operand, const Dim& classes);
  const ir::Function& function_;
  IndexUse use_;
};

}  // namespace paddle::train
