#pragma once
// The record that the backward engine walks: which call produced a tensor, with which operands and
// results. Implemented by the tape and by traced functions.

#include <cstdint>

#include "autograd/autograd.h"
#include "ir/module.h"
#include "tensor/tensor.h"

namespace paddle::autograd {

/// A recorded call.
struct RecordedCall {
  const Op* op = nullptr;
  const Attrs* attrs = nullptr;
  Tensors operands;
  Tensors results;
  std::string location;                      ///< source location in the model, if known
  const ir::Operation* operation = nullptr;  ///< set for control flow in a traced function
  const CustomVjp* vjp = nullptr;            ///< in place of the operation's; null: that one
};

class History {
 public:
  /// Identity of a value: its producer (null if there is none) and the index among its results.
  struct Key {
    const void* node = nullptr;
    size_t index = 0;
    bool leaf = false;                             ///< a value whose producer is not recorded
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  virtual ~History() = default;
  virtual Key key(const Tensor& tensor) = 0;
  /// The call that produced a value that is not a leaf.
  virtual RecordedCall call(const Key& key) = 0;
  /// Increases along every path of the computation.
  virtual int64_t sequence(const Key& key) = 0;
  /// The hooks of a value, in the order of their addition.
  virtual std::vector<GradientHook> hooks(const Key& /*key*/) { return {}; }
};

/// The history of a tensor: that of its function if it is traced, else the tape.
std::unique_ptr<History> history_of(const Tensor& tensor);

/// The backward engine: gradients of outputs for inputs, given cotangents (undefined ones skipped).
Tensors backward(History& history, const Tensors& outputs, const Tensors& cotangents,
                 const Tensors& inputs);

/// Gradients of a cf.if or cf.while in a traced function, one per operand.
Tensors control_flow_vjp(const RecordedCall& call, const Tensors& cotangents,
                         const std::vector<bool>& needed);

}  // namespace paddle::autograd
