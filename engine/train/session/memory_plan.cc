#include "train/session/memory_plan.h"

#include <algorithm>

#include "base/error.h"
#include "base/limits.h"

namespace paddle::train {

uint64_t available_memory() { return static_cast<uint64_t>(limits().memory); }

uint64_t MemoryPlan::total() const {
  uint64_t bytes = training.total() + prefetch;
  if (evaluation) bytes += evaluation->arena;
  return bytes;
}

std::string MemoryPlan::advice() const {
  const uint64_t step = training.arena;
  const uint64_t evaluating = evaluation ? evaluation->arena : 0;
  if (prefetch > step && prefetch > evaluating)
    return "lower data.prefetch_bytes or data.batch_size";
  if (evaluating > step && evaluating > training.inputs)
    return str("lower data.valid_batch_size (", evaluation_batch, ")");
  if (step >= training.inputs || batch / std::max<int64_t>(accumulate, 1) > 1)
    return str("raise train.accumulate (", accumulate, ") or lower data.batch_size (", batch, ")");
  return "the parameters by themselves are too large: make the model smaller";
}

std::string MemoryPlan::text() const {
  std::string out;
  const auto line = [&](const char* what, uint64_t bytes) {
    std::string label = what;
    label.resize(44, ' ');
    out += "  " + label + human_bytes(bytes) + "\n";
  };
  line("parameters, states and a batch", training.inputs);
  line("activations, gradients and temporaries", training.arena);
  line("  of which scratch of a kernel, at most", training.scratch);
  line("constants", training.constants);
  if (evaluation) line("evaluation", evaluation->arena);
  line("batches made ahead, at most", prefetch);
  line("in all", total());
  line("memory of this machine", available);
  return out + (fits() ? "  it fits\n" : "  it does not fit: " + advice() + "\n");
}

void MemoryPlan::require_fit() const {
  if (!fits())
    fail(ErrorCode::kDevice, "the run does not fit in memory: it needs ", human_bytes(total()),
         ", there are ", human_bytes(available), "; ", advice());
}

}  // namespace paddle::train
