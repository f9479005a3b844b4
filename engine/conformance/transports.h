#pragma once
// The checks of a transport: ranks are threads of this process that join a run over it. Results are
// compared with those of the engine's transport between threads.

#include <string>
#include <vector>

#include "base/kind_options.h"
#include "conformance/calls.h"

namespace paddle::conformance {

/// "collectives/2", "mismatch", …: with the numbers of ranks of the extent.
std::vector<std::string> transport_checks(const Extent& extent);
/// "" or what is wrong. `kind`: one of comm::transport_kinds. A rank that does not return in time
/// stays a thread of this process.
std::string check_transport(const KindChoice& kind, const std::string& check, const Extent& extent);

}  // namespace paddle::conformance
