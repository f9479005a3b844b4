#pragma once
// A model as a function of the IR with its weights, for tools that transform or write models.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ir/module.h"
#include "program/model.h"
#include "program/parameter_store.h"
#include "program/served_tables.h"

namespace paddle::program {

struct TracedModel {
  std::string name;
  std::shared_ptr<ir::Function> function;  ///< parameters and states are inputs by name
  /// The value of a parameter or state; weights of files stay mapped.
  std::function<Array(const std::string& name)> weight;
  std::optional<ModelMetadata> metadata;  ///< of a trained model
  std::shared_ptr<ServedTables> tables;   ///< of a folder: what inputs with rows are looked up in
  std::vector<std::string> functions;     ///< names that LoadOptions::function may have
};

/// When the values of weights are made: with the trace, or each time that they are asked for, so
/// that a model larger than the memory can be passed through.
enum class WeightValues : uint8_t { kTraced, kDeferred };

/// Opens what load_model opens. A model that asks for the value of a dim (`static(dim)`) needs it
/// in `dims`; kUsage if it lacks one.
TracedModel trace_model(const std::string& path, const LoadOptions& options,
                        const std::map<std::string, int64_t>& dims = {},
                        WeightValues values = WeightValues::kTraced);
/// One entry of a program, with initial weights. kUsage if it lacks a dim.
TracedModel trace_entry(const lang::Program& program, const lang::EntryPoint& entry,
                        const std::map<std::string, int64_t>& dims = {},
                        WeightValues values = WeightValues::kTraced);

}  // namespace paddle::program
