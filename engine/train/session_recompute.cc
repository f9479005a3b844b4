// The choice of what a training step computes again instead of keeping it.

#include <algorithm>

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

std::optional<passes::RecomputeOptions> Session::choose_recompute(const ir::Function& function) {
  if (!options_.recompute || recompute_chosen_) return options_.recompute;
  recompute_chosen_ = true;
  passes::RecomputeOptions& chosen = *options_.recompute;
  const auto copy = ir::clone(function);
  runtime::optimize(*copy, options_.compile);
  const passes::Recomputed all = passes::recompute(*copy, chosen);
  if (all.layers == 0)
    fail(ErrorCode::kConfig, "parallel.recompute: no layer matches ", join(chosen.layers, ", "));
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
