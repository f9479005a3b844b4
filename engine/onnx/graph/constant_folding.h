#pragma once
// Constant folding while a graph is traced: calls on constants run immediately if their results are
// small, so that shape and weight arithmetic of exporters becomes constants.

#include "runtime/execute.h"

namespace paddle::onnx {

/// Bytes of the results as far as they are static. kModel if they cannot fit into memory, or if the
/// call computes on a storage-only dtype.
int64_t checked_bytes(const OpCall& call);

class ConstantFolder final : public ForwardingInterpreter {
 public:
  Tensors apply(const OpCall& call) override;

 private:
  bool should_fold(const OpCall& call);

  runtime::EagerExecutor eager_;
  int64_t folded_bytes_ = 0;
};

}  // namespace paddle::onnx
