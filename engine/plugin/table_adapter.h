#pragma once
// A table of a plug-in (paddle/plugin/table.h) as one of the engine.

#include <memory>
#include <string>
#include <vector>

#include "base/kind_options.h"
#include "paddle/plugin/table.h"
#include "program/row_table.h"

namespace paddle::plugin {

struct TableContext {
  std::string plugin;      ///< "acme 1.0.0"
  std::string name;        ///< "acme.file_rows"
  paddle_table functions;  ///< what the engine knows of the plug-in's struct
  std::vector<KindKey> keys;
};

/// Opens an empty table; the context must outlive it. kConfig if the optimizer's update of a row
/// needs other rows, or the plug-in's error.
std::unique_ptr<program::RowTable> open_plugin_table(const TableContext& context,
                                                     program::TableSpec spec,
                                                     std::shared_ptr<const optim::Optimizer> rule,
                                                     uint64_t seed, KindOptions options);

/// The functions that tables of plug-ins call.
const paddle_records& records_functions();

}  // namespace paddle::plugin
