// The choice of what a training step computes again instead of keeping it.

#include <algorithm>
#include <utility>

#include "ir/clone.h"
#include "runtime/compile.h"
#include "train/session/step_compiler.h"

namespace paddle::train {

runtime::MemoryReport StepCompiler::memory_with(const ir::Function& function,
                                                std::optional<passes::RecomputeOptions> recompute) {
  std::vector<Layout> layouts;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const TensorType& type = function.body.arguments[i]->type;
    const bool is_known = std::all_of(type.shape.begin(), type.shape.end(),
                                      [](const Dim& d) { return d.is_constant(); });
    layouts.push_back(
        Layout::contiguous(type.dtype, is_known ? concrete(type.shape) : shapes_.at(i)));
  }
  compiler::CompileOptions compile = context_.options.compile;
  compile.recompute = std::move(recompute);
  return runtime::compile(ir::clone(function), compile)->plan(layouts).memory();
}

std::optional<passes::RecomputeOptions> StepCompiler::choose_recompute(
    const ir::Function& function) {
  if (!context_.options.recompute || recompute_chosen_) return context_.options.recompute;
  recompute_chosen_ = true;
  passes::RecomputeOptions& chosen = *context_.options.recompute;
  const auto copy = ir::clone(function);
  runtime::optimize(*copy, context_.options.compile);
  const passes::Recomputed all = passes::recompute(*copy, chosen);
  if (all.layers == 0) context_.reject_recompute();
  if (context_.options.recompute_budget > 0) {
    // The fewest layers that do: more of them never need more.
    const uint64_t states = context_.options.accumulate > 1
                                ? context_.optimizer_bytes([](const std::string&) { return true; })
                                : 0;
    const auto fits = [&](int layers) {
      chosen.most = layers;
      return memory_with(function, chosen).total() + states <= context_.options.recompute_budget;
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
  if (shapes_.empty()) return context_.options.recompute;
  const runtime::MemoryReport before = memory_with(function, std::nullopt);
  const runtime::MemoryReport after = memory_with(function, chosen);
  const int layers = chosen.most < 0 ? all.layers : chosen.most;
  recompute_text_ =
      str("recompute: ", layers, " of ", all.layers, " layers; activations and temporaries ",
          human_bytes(before.arena), " → ", human_bytes(after.arena));
  if (context_.options.recompute_budget > 0 && after.total() > context_.options.recompute_budget)
    recompute_text_ +=
        str("; a step needs ", human_bytes(after.total()), ", more than the budget of ",
            human_bytes(context_.options.recompute_budget));
  return context_.options.recompute;
}

}  // namespace paddle::train
