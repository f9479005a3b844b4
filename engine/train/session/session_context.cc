#include "train/session/session_context.h"

#include <algorithm>

namespace paddle::train {

std::function<bool(const std::string&)> SessionContext::frozen() const {
  return [step = step](const std::string& path) { return step->definition().is_frozen(path); };
}

void SessionContext::put_field(Array& to, const Array& array, size_t field) const {
  const DType wanted = fields[field].type.dtype;
  if (array.dtype == wanted && array.is_contiguous())
    to = array;  // a copy of the pointer; shape and strides keep their room
  else
    to = array.on_host().cast(wanted);
}

uint64_t SessionContext::random_counter(const StepScalars& numbers, size_t micro_batch) const {
  return static_cast<uint64_t>(numbers.step) *
             static_cast<uint64_t>(std::max<int64_t>(1, options.accumulate)) +
         micro_batch;
}

uint64_t SessionContext::optimizer_bytes(
    const std::function<bool(const std::string&)>& is_here) const {
  const int data = options.mesh.axis_size_of("data");
  int64_t bytes = 0;
  for (const auto& [name, parameter] : store.parameters) {
    if (!is_here(name)) continue;
    const Array* const exact = store.master(name);
    const Array& value = exact ? *exact : parameter.value;
    for (const NamedOptimizer& each : step->definition().optimizers) {
      if (each.optimizer->is_frozen(name)) continue;
      for (const optim::StateSlot& slot : each.optimizer->slots(name, value.shape)) {
        const Dims shape = slot.shape.value_or(value.shape);
        bytes += storage_bytes(value.dtype, element_count(std::span(shape)));
      }
      break;  // one optimizer updates it
    }
  }
  return static_cast<uint64_t>(options.sharding > 0 ? (bytes + data - 1) / data : bytes);
}

void SessionContext::reject_recompute() const {
  fail(ErrorCode::kConfig, "parallel.recompute: no layer matches ",
       join(options.recompute->layers, ", "));
}

int SessionContext::pipeline_position() const {
  return options.mesh.coordinate(options.communicator->rank(), options.mesh.axis("pipeline"));
}

int SessionContext::pipeline_rank(int stage) const {
  const int axis = options.mesh.axis("pipeline");
  const auto group = options.mesh.group(options.communicator->rank(), axis);
  return static_cast<int>(group[static_cast<size_t>(stage % options.mesh.axis_size(axis))]);
}

}  // namespace paddle::train
