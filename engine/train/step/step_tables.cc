// Rows of tables as leaves of a step: their gradients are those of values, not of parameters.

#include <algorithm>
#include <map>

#include "ops/core/row_sparse.h"
#include "ops/generated/creation.h"
#include "ops/generated/shape.h"
#include "train/step/step.h"
#include "train/step/step_body.h"

namespace paddle::train {
namespace {

/// The lookups of a table that training changes.
using Lookups = std::vector<const program::TableLookup*>;

std::map<std::string, Lookups> trained_lookups(const program::ParameterBinding& ports,
                                               const optim::Optimizer& optimizer) {
  std::map<std::string, Lookups> out;
  for (const program::TableLookup& lookup : ports.lookups())
    if (!optimizer.is_frozen(program::table_weight(lookup.table)))
      out[lookup.table].push_back(&lookup);
  return out;
}

Tensor joined(const Tensors& parts) { return parts.size() == 1 ? parts[0] : ops::concat(parts, 0); }

/// The gradients of a table's lookups as one, [n, width]; undefined if the loss depends on none.
/// Row-sparse where rows have numbers, so that norms are those of sums over equal keys.
Tensor joined_gradient(const Lookups& lookups, const Tensors& gradients) {
  if (std::none_of(gradients.begin(), gradients.end(), [](const Tensor& g) { return g.defined(); }))
    return {};
  Tensors rows, numbers;
  for (size_t i = 0; i < lookups.size(); ++i) {
    const Tensor& of_rows = lookups[i]->rows;
    const Tensor gradient = gradients[i].defined() ? gradients[i] : ops::zeros_like(of_rows);
    rows.push_back(ops::reshape(gradient, {Dim(-1), of_rows.dim(-1)}));
    if (lookups[i]->numbers.defined())
      numbers.push_back(ops::reshape(lookups[i]->numbers, {Dim(-1)}));
  }
  const Tensor all = joined(rows);
  return numbers.empty() ? all : make_row_sparse(joined(numbers), all, all.dim(0));
}

}  // namespace

Step::LossGradients Step::loss_gradients(program::ParameterBinding& ports, const UpdateCall& call,
                                         const std::vector<std::string>& names) const {
  const auto lookups = trained_lookups(ports, *d_.optimizers[call.optimizer].optimizer);
  Tensors leaves;
  for (const auto& [table, uses] : lookups)
    for (const program::TableLookup* use : uses) leaves.push_back(use->rows);
  LossGradients out;
  out.parameters = gradients(ports, call.loss, names, leaves);
  auto at = out.parameters.begin() + static_cast<ptrdiff_t>(names.size());
  for (const auto& [table, uses] : lookups) {
    const Tensors of_uses(at, at + static_cast<ptrdiff_t>(uses.size()));
    at += static_cast<ptrdiff_t>(uses.size());
    for (size_t i = 0; i < uses.size(); ++i)
      if (of_uses[i].defined()) out.tables.push_back({table, uses[i]->field, of_uses[i]});
    if (ports.numbers_rows) out.joined.push_back(joined_gradient(uses, of_uses));
  }
  out.parameters.resize(names.size());
  return out;
}

void Step::update_all(program::ParameterBinding& ports, const StepInputs& inputs,
                      const UpdateCall& call, std::vector<TableGradient>& tables) const {
  const auto names = trainable(ports, call);
  LossGradients found = loss_gradients(ports, call, names);
  Tensors all = std::move(found.parameters);
  all.insert(all.end(), found.joined.begin(), found.joined.end());
  update(ports, inputs, call.optimizer, names, std::move(all), false);
  for (TableGradient& each : found.tables) tables.push_back(std::move(each));
}

std::string Step::tables_rejection() const {
  const auto unsupported = [](const char* what) {
    return str("tables cannot be trained with ", what);
  };
  const optim::Optimizer& rule = *d_.optimizers.front().optimizer;
  if (calls(d_.loss, "update")) return unsupported("a 'step:'; expected 'loss:'");
  if (d_.optimizers.size() > 1 || !d_.optimizers.front().name.empty())
    return unsupported("'optimizers:'; expected one 'optimizer:'");
  if (minimizer()) return unsupported("the optimizer lbfgs");
  if (rule.options().layer_decay != 1) return unsupported("optimizer.layer_decay");
  if (d_.mixed && d_.mixed->scaling) return unsupported("precision float16; expected bfloat16");
  if (d_.skips_nonfinite) return unsupported("train.on_nonfinite: skip");
  if (d_.average) return unsupported("averages of the weights");
  if (d_.adapters) return unsupported("'lora:'");
  if (d_.distillation) return unsupported("'distillation:'");
  if (d_.interpreters.size() > (d_.mixed ? 1u : 0u)) return unsupported("quant.train");
  return "";
}

}  // namespace paddle::train
