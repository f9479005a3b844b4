#pragma once
// The model as a function of its inputs alone, for inference: traced from a program, and written
// as the folder that paddle-infer takes.

#include <memory>
#include <string>

#include "ir/module.h"
#include "model/program.h"
#include "train/store.h"

namespace paddle::train {

/// Traces an entry in evaluation mode. Makes parameters that the store lacks.
std::shared_ptr<ir::Function> trace_prediction(const model::Program& program,
                                               const model::EntryPoint& entry, Store& store,
                                               bool wide);
/// A module with this one function and the store's parameters and model states.
ir::Module prediction_module(std::shared_ptr<ir::Function> function, const std::string& name,
                             const Store& store);

}  // namespace paddle::train
