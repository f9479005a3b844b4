#pragma once
// Graphs of files under an interpreter that traces: calls on constants run at once, if what they
// give is small, so that what exporters compute on shapes and weights is there as values.

#include "runtime/execute.h"

namespace paddle::onnx {

/// Refuses a call whose results the machine cannot hold, or that computes on types that are only
/// stored; their bytes, as far as they are known. kModel.
int64_t checked_bytes(const OpCall& call);

class ConstantFolder final : public PassingInterpreter {
 public:
  Tensors apply(const OpCall& call) override;

 private:
  bool should_fold(const OpCall& call);

  runtime::EagerExecutor eager_;
  int64_t folded_bytes_ = 0;  ///< bytes of results so far
};

}  // namespace paddle::onnx
