// The choice of what a training step computes again instead of keeping it.

#include <algorithm>

#include "compiler/passes/schedule/dropped_values.h"
#include "ir/clone.h"
#include "runtime/compile.h"
#include "train/compiled_part.h"

namespace paddle::train {

runtime::MemoryReport Session::memory_with(const ir::Function& function,
                                           std::optional<passes::RecomputeOptions> recompute) {
  std::vector<Layout> layouts;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const TensorType& type = function.body.arguments[i]->type;
    const bool is_known = std::all_of(type.shape.begin(), type.shape.end(),
                                      [](const Dim& d) { return d.is_constant(); });
    layouts.push_back(
        Layout::contiguous(type.dtype, is_known ? concrete(type.shape) : shapes_.at(i)));
  }
  compiler::CompileOptions compile = options_.compile;
  compile.recompute = std::move(recompute);
  return runtime::compile(ir::clone(function), compile)->plan(layouts).memory();
}

namespace {

[[noreturn]] void refuse_patterns(const passes::RecomputeOptions& options) {
  fail(ErrorCode::kConfig, "parallel.recompute: no layer matches ", join(options.layers, ", "));
}

/// Bytes of the values that ranks keep between the jobs of a micro-batch, in all stages.
size_t kept_bytes(const partition::StageCut& cut) {
  size_t bytes = 0;
  for (const ir::Value* v : cut.values()) {
    const Dims shape = concrete(v->type.shape);
    bytes += static_cast<size_t>(storage_bytes(v->type.dtype, element_count(std::span(shape))));
  }
  return bytes;
}

}  // namespace

std::unordered_set<const ir::Value*> Session::dropped_in_pipeline(
    ir::Function& function, const partition::LeafStages& leaves, int stages) {
  passes::DroppedValues dropped = passes::dropped_values(function, *options_.recompute);
  if (dropped.layers == 0) refuse_patterns(*options_.recompute);
  if (recompute_text_.empty()) {
    const bool splits = options_.schedule == partition::Schedule::kZeroBubble;
    const partition::StageCut before(function, leaves, stages, true, splits);
    const partition::StageCut after(function, leaves, stages, true, splits, dropped.values);
    recompute_text_ = str("recompute: ", dropped.layers, " layers; the stages keep ",
                          human_bytes(kept_bytes(before)), " → ", human_bytes(kept_bytes(after)),
                          " for each micro-batch");
  }
  return std::move(dropped.values);
}

std::optional<passes::RecomputeOptions> Session::choose_recompute(const ir::Function& function) {
  if (!options_.recompute || recompute_chosen_) return options_.recompute;
  recompute_chosen_ = true;
  passes::RecomputeOptions& chosen = *options_.recompute;
  const auto copy = ir::clone(function);
  runtime::optimize(*copy, options_.compile);
  const passes::Recomputed all = passes::recompute(*copy, chosen);
  if (all.layers == 0) refuse_patterns(chosen);
  if (options_.recompute_budget > 0) {
    // The fewest layers that do: more of them never need more.
    const auto fits = [&](int layers) {
      chosen.most = layers;
      return memory_with(function, chosen).total() <= options_.recompute_budget;
    };
    int low = 0, high = all.layers;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (fits(middle))
        high = middle;
      else
        low = middle + 1;
    }
    chosen.most = high;
  }
  if (shapes_.empty()) return options_.recompute;
  const runtime::MemoryReport before = memory_with(function, std::nullopt);
  const runtime::MemoryReport after = memory_with(function, chosen);
  const int layers = chosen.most < 0 ? all.layers : chosen.most;
  recompute_text_ =
      str("recompute: ", layers, " of ", all.layers, " layers; activations and temporaries ",
          human_bytes(before.arena), " → ", human_bytes(after.arena));
  if (options_.recompute_budget > 0 && after.total() > options_.recompute_budget)
    recompute_text_ += str("; a step needs ", human_bytes(after.total()),
                           ", more than the budget of ", human_bytes(options_.recompute_budget));
  return options_.recompute;
}

}  // namespace paddle::train
