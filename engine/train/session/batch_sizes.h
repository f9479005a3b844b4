#pragma once
// Which numbers of samples a run's batches have, and which of them its model cannot take: batches
// of another size than a model states, and normalization over a single value. Checked before the
// first step.

#include <set>
#include <string>
#include <vector>

#include "data/loader.h"
#include "tensor/interpreter.h"

namespace paddle::train {

/// A call that normalizes by the statistics of its batch.
struct NormCall {
  std::string operation;
  std::string place;  ///< "model.yaml:6:5"
  std::string over;   ///< what a mean and a variance are of: "channel"
  Dim values;         ///< number of values
};

/// Passes all calls on and notes those that normalize by statistics of the batch. Install it above
/// a tracer.
class NormWatch final : public ForwardingInterpreter {
 public:
  Tensors apply(const OpCall& call) override;
  const std::vector<NormCall>& calls() const { return calls_; }

 private:
  std::vector<NormCall> calls_;
};

/// Whether the call is a batch_norm that normalizes by the mean and the variance of its batch.
bool uses_batch_statistics(const OpCall& call);

/// Samples in the batches of an epoch: those of the full ones, and of a short last one.
struct BatchSizes {
  int64_t full = 0;     ///< 0: there is none
  int64_t last = 0;     ///< 0: the last one is full
  int64_t samples = 0;  ///< of an epoch
};
/// `batches`: largest number that is read.
BatchSizes batch_sizes(const data::Loader& loader, int64_t batch, int64_t batches);
/// The sizes that a batch of `samples` is split into.
std::set<int64_t> micro_batch_sizes(int64_t samples, int64_t accumulate);
/// The largest of them.
int64_t largest_micro_batch(int64_t samples, int64_t accumulate);

}  // namespace paddle::train
