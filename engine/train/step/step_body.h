#pragma once
// The body of a `step:` as code: the models and functions that it can call, and its updates.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lang/eval/evaluator.h"
#include "lang/syntax/program.h"

namespace paddle::train {

struct StepDefinition;

/// `update(loss, optimizer="d", only="d.*", every=2)`.
struct UpdateCall {
  Tensor loss;
  size_t optimizer = 0;                ///< index in StepDefinition::optimizers
  std::vector<std::string> only = {};  ///< patterns of parameters; empty: all
  int64_t every = 1;
};

/// Fields as variables, so that `grad` can differentiate by those that have gradients.
std::map<std::string, Tensor> variables(std::map<std::string, Tensor> fields);

/// The outputs of a model for inputs by name.
lang::NamedValues run_model(const lang::Program& program,
                            const std::map<std::string, Tensor>& inputs,
                            const lang::EvaluationOptions& options);

/// Whether the code calls a function of that name.
bool calls(const lang::Code& code, std::string_view callee);

/// Runs a `step:` body. `on_update` is called for each update where it is reached, so that what
/// follows in the body sees what it changed. `names` receives fields, the outputs of `model:` where
/// the body does not call it, and what the body assigned. kConfig, with the place, for calls that
/// do not fit.
void run_step_body(const StepDefinition& definition, std::map<std::string, Tensor> fields,
                   const lang::EvaluationOptions& options, lang::NamedValues& names,
                   const std::function<void(const UpdateCall&)>& on_update);

}  // namespace paddle::train
