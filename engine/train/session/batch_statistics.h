#pragma once
// Means and variances of a batch in the norms of the forward pass, from which running statistics
// for averaged weights are computed.

#include <string>
#include <utility>
#include <vector>

#include "ir/tracer.h"
#include "tensor/interpreter.h"

namespace paddle::train {

/// Passes all calls on, but lets each batch_norm in training keep its running statistics, and notes
/// the mean and the (biased) variance of its batch.
class BatchStatistics final : public ForwardingInterpreter {
 public:
  struct Value {
    Tensor state;     ///< the running statistic, an operand
    Tensor of_batch;  ///< of the same shape
  };
  Tensors apply(const OpCall& call) override;
  Tensors branch(const Tensor& condition, const TensorFn& then_fn,
                 const TensorFn& else_fn) override;
  Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
               int64_t max_steps) override;
  const std::vector<Value>& values() const { return values_; }
  /// Places of norms in branches and loops, whose statistics are not noted.
  const std::vector<std::string>& others() const { return others_; }

 private:
  std::vector<Value> values_;
  std::vector<std::string> others_;
  int depth_ = 0;  ///< of branches and loops
};

/// Makes the noted values outputs of a function: the names of their states, in the order of the
/// outputs. Values whose running statistic is not a state of the function are left out.
std::vector<std::string> add_statistics_outputs(ir::Function& f, ir::Tracer& tracer,
                                                const BatchStatistics& statistics);

}  // namespace paddle::train
