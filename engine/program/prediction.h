#pragma once
// The model as a function of its inputs only, for inference: traced from a program, and written
// as the folder that paddle-infer takes.

#include <map>
#include <memory>
#include <string>

#include "config/document.h"
#include "ir/module.h"
#include "lang/syntax/program.h"
#include "program/parameter_binding.h"
#include "program/parameter_store.h"
#include "quant_common/fake_quant.h"

namespace paddle::program {

/// The name that a saved model's module gives to the prediction; its other functions have those of
/// the model file.
inline constexpr std::string_view kPrediction = "predict";

/// Values of dims that `static(dim)` may take in a trace, and those that it took: the trace is good
/// for these only.
struct StaticDims {
  std::map<std::string, int64_t> known, fixed;
};

/// Traces an entry in evaluation mode. Makes parameters that the store lacks. With `dims`, returns
/// null if the model asks for the value of a dim that is not known. With `quantization`, layers
/// compute on quantized values, with constant scales from the values of the store. With `deferred`,
/// parameters that the store lacks get no values there, but in this map. `target`: where the
/// function will run; the default for one that is saved. `tables`: those whose rows are inputs of
/// the function (`rows_port`); the rows of others are found among the parameters.
std::shared_ptr<ir::Function> trace_prediction(
    const lang::Program& program, const lang::EntryPoint& entry, ParameterStore& store,
    bool use_float64, StaticDims* dims = nullptr,
    const quant::FakeQuantization* quantization = nullptr, DeferredValues* deferred = nullptr,
    const TargetInfo& target = {}, TableHost* tables = nullptr);
/// How a run with this resolved config trains with quantization; null if it does not.
std::shared_ptr<const quant::FakeQuantization> read_quantization(const config::Node& config);
/// The scale of an output of a prediction function, derived from its producer.
enum class OutputScale { kUnknown, kSoftmax, kLogSoftmax, kSigmoid };
/// `output` counts the results of the function.
OutputScale output_scale(const ir::Function& function, size_t output);

/// The slot of a state in a module.
ir::Slot state_slot(const ParameterStore& store, const std::string& path);

/// A module with this one function (or none) and the store's parameters and model states.
ir::Module prediction_module(std::shared_ptr<ir::Function> function, const std::string& name,
                             const ParameterStore& store);

}  // namespace paddle::program
