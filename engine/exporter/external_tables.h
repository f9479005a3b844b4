#pragma once
// Tables that are too large for the graph: it takes their rows as inputs (`rows:TABLE:FIELD`), and
// a folder next to the file has the rows and says which keys they are for. Users of other runtimes
// look the rows up before a run.
//
//   model.onnx
//   model.tables/tables.json
//   model.tables/user.safetensors    `keys` in rising order, and `weight`

#include <string>
#include <vector>

#include "ir/module.h"
#include "program/served_tables.h"

namespace paddle::exporter {

/// model.tables for model.onnx.
std::string tables_folder(const std::string& output);
/// Writes the folder. An existing one is replaced when the new one is whole. Takes memory for the
/// keys of a table.
void write_external_tables(const std::string& folder,
                           const std::vector<const ir::Function*>& functions,
                           const program::ServedTables& tables);

}  // namespace paddle::exporter
