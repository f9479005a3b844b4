#include "inspect/run_op.h"

#include "autograd/autograd.h"

namespace paddle::inspect {
namespace {

/// One name per visible result.
std::vector<std::string> result_names(const Op& op, size_t count) {
  std::vector<std::string> names;
  for (const ResultDef& r : op.results()) {
    if (r.hidden) continue;
    if (!r.variadic) names.emplace_back(r.name);
    for (size_t i = 0; r.variadic && names.size() < count; ++i)
      names.push_back(str(r.name, ".", i));
  }
  while (names.size() < count) names.push_back(str("result.", names.size()));
  return names;
}

}  // namespace

formats::NamedArrays run_named(const NamedCall& call, Mode mode, bool gradients, Device device) {
  std::vector<size_t> wanted;
  for (size_t i = 0; gradients && i < call.inputs().size(); ++i)
    if (is_differentiable(call.inputs()[i].dtype)) wanted.push_back(i);
  const auto arrays = run(
      mode,
      [&](const Tensors& inputs) {
        Tensors results = call(inputs), leaves;
        for (const size_t i : wanted) leaves.push_back(inputs[i]);
        if (!leaves.empty())
          for (const Tensor& g : autograd::grad(Tensors(results), leaves)) results.push_back(g);
        return results;
      },
      call.inputs(), device);
  formats::NamedArrays out;
  const size_t count = arrays.size() - wanted.size();
  const auto names = result_names(call.op(), count);
  for (size_t i = 0; i < arrays.size(); ++i) {
    const std::string name = i < count ? names[i] : "grad_" + call.input_name(wanted[i - count]);
    if (arrays[i]) out.emplace_back(name, *arrays[i]);
  }
  return out;
}

}  // namespace paddle::inspect
