#pragma once
// The engine's own transports and tables as the C structs of a plug-in: a plug-in made of them must
// behave as they do.

#include "comm/transport_kind.h"
#include "paddle/plugin/comm.h"
#include "paddle/plugin/table.h"
#include "plugin/table_adapter.h"
#include "plugin/transport_adapter.h"
#include "program/row_table.h"

namespace paddle::conformance {

/// A transport of the engine as a struct. `transport_kind_of` gives the kind that opens
/// `engine_kind` and calls it through such a struct, in which tests may put faults.
paddle_transport exported_transport_functions();
comm::TransportKind transport_kind_of(const std::string& name, const std::string& engine_kind,
                                      const paddle_transport& functions);

/// The records of the table in memory as a struct, and the kind of such a struct.
paddle_table exported_table_functions();
program::TableKind table_kind_of(const std::string& name, const paddle_table& functions);

}  // namespace paddle::conformance
