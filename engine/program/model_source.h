#pragma once
// Opening what a model is read from: a folder with a saved model or a checkpoint, or a model file.
// NativeModel and trace_model share it.

#include <map>
#include <memory>
#include <string>

#include "formats/safetensors.h"
#include "ir/module.h"
#include "lang/syntax/program.h"
#include "program/model.h"
#include "program/parameter_store.h"
#include "program/served_tables.h"
#include "quant_common/fake_quant.h"

namespace paddle::program {

/// A folder as find_model_folder returns it.
struct ModelFolder {
  std::string name;
  ModelMetadata metadata;
  std::shared_ptr<ir::Function> predict;  ///< the wanted function; null: to be traced
  std::vector<std::string> functions;     ///< "model" and the others that there are
  /// A checkpoint holds the functions of training, and a model that asks for the values of dims has
  /// a function for each of them; then the config says how to predict.
  std::shared_ptr<const lang::Program> program;
  const lang::EntryPoint* entry = nullptr;  ///< of `program`: the wanted function
  bool use_float64 = false;
  /// Of a run that trains with quantization; the trace then needs the values of the weights.
  std::shared_ptr<const quant::FakeQuantization> quantization;
  std::shared_ptr<const formats::SafetensorsReader> weights;  ///< used where they lie in the file
  FolderTables stored;                                        ///< all tables of the folder
  /// Those whose rows the function takes as inputs, or those that it may.
  std::shared_ptr<ServedTables> tables;
};
/// `function`: "model", the prediction, or another function of the model over the same weights.
/// kUsage if there is none of that name. `inline_tables`: tables of more bytes are to be inputs of
/// the function, others searched by it; nullopt: as it is stored.
ModelFolder open_model_folder(const std::string& path, const std::string& function = "model",
                              std::optional<uint64_t> inline_tables = std::nullopt);
/// Reads the parameters and states of the function into the store; kModel if one does not fit.
void read_weights(const formats::SafetensorsReader& weights, const ir::Function& function,
                  ParameterStore& store);

/// Puts the tables of the folder that are not inputs of its function into the store, as table_keys
/// and table_weight: a trace needs their numbers of rows.
void read_tables(const ModelFolder& folder, ParameterStore& store);

/// A model file and the entry that the options name; kUsage for a path, entry or weights that do
/// not exist.
struct ModelFile {
  std::shared_ptr<const lang::Program> program;
  const lang::EntryPoint* entry = nullptr;
};
ModelFile open_model_file(const std::string& path, const LoadOptions& options);
/// Parameters of the store begin with the values of the file, where it has them in the right form.
void preset_weights(ParameterStore& store, const std::string& weights);
/// Loads the weights that the options name into the store of a traced entry. Weights that belong to
/// another entry of the file are not unused.
LoadReport load_file_weights(const ModelFile& file, const LoadOptions& options,
                             const std::map<std::string, int64_t>& dims, ParameterStore& store);
/// The same checks, without reading a value.
void check_file_weights(const ModelFile& file, const LoadOptions& options,
                        const std::map<std::string, int64_t>& dims, const ParameterStore& store);

}  // namespace paddle::program
