#pragma once
// Which integers of the data a program takes: labels below the number of classes of the loss, ids
// below the rows of an embedding. The loader checks samples against them, so that a label out of
// range is reported with its file and row and not from inside a kernel.

#include <string>
#include <vector>

#include "data/loader.h"
#include "ir/module.h"
#include "program/output_units.h"
#include "tensor/interpreter.h"

namespace paddle::program {

/// The kind of class scores that a loss expects.
enum class Scores { kUnknown, kLogits, kProbabilities, kLogProbabilities };

/// A field that a loss compares with what the model computes, element by element. `output`: the
/// output that it is compared with, or a part of it; "" where it is another value.
struct TargetUse {
  std::string field, output;
};

/// How a program uses the fields of the data.
struct FieldUse {
  /// One range per field: where several uses differ, what all of them take.
  std::vector<data::ValueRange> ranges;
  std::string label;    ///< the field that a loss takes as class numbers; "" if none does
  int64_t classes = 0;  ///< of that loss
  /// If that loss is a mean over the labels that are not this one.
  std::optional<int64_t> ignored;
  std::string scored_output = {};  ///< the model's output that this loss takes; "" if none
  Scores scores = Scores::kUnknown;
  std::vector<TargetUse> targets = {};
  std::vector<OutputUnit> units = {};    ///< of the outputs
  std::vector<std::string> inputs = {};  ///< fields that the model takes, so not targets
};

/// The name of the field that a traced tensor is, up to its shape and dtype, or "".
std::string field_of(const Tensor& tensor);
/// The same for a tensor that may be some columns of the field, which `columns` then has.
std::string field_of(const Tensor& tensor, std::vector<int64_t>& columns);

/// Passes all calls on and notes those that use an input of the traced function as an index.
/// Install it above a tracer.
class FieldUseWatch final : public Interpreter {
 public:
  Tensors apply(const OpCall& call) override;
  Tensors branch(const Tensor& condition, const TensorFn& then_fn,
                 const TensorFn& else_fn) override;
  Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
               int64_t max_steps) override;
  bool traces() const override { return true; }
  Device device() const override { return next().device(); }

  /// After the trace. `outputs` are the model's, by name; `inputs` are fields that are not targets.
  FieldUse use(const ir::Function& function,
               const std::vector<std::pair<std::string, Tensor>>& outputs,
               const std::vector<std::string>& inputs) const;

 private:
  void note(const Tensor& index, const Dim& bound, std::optional<int64_t> also);
  void note_label(const OpCall& call, size_t operand, const Dim& classes);
  void note_comparison(const OpCall& call);
  void note_binary(const OpCall& call);
  FieldUse use_;
  const ir::Value* scored_ = nullptr;
  std::vector<Comparison> comparisons_;
};

}  // namespace paddle::program
