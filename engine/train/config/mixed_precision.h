#pragma once
// `precision` and `amp`: which operations of a run compute in 16 bits, and the scaling of its loss.

#include <optional>
#include <string>
#include <vector>

#include "config/diagnostics.h"
#include "config/schema.h"
#include "train/step/step.h"

namespace paddle::train {

/// The section `amp:`.
config::Schema amp_schema();

/// Reads the keys `precision` and `amp` of a run; none for float32 and float64. Errors and
/// warnings go to `diagnostics`.
std::optional<MixedPrecision> read_mixed(const config::Section& s,
                                         config::Diagnostics& diagnostics);

/// Throws kConfig at `location` for a pattern of `full_layers` that no operation of the traced
/// steps matched, with the nearest layer that has one of the parameters.
void check_full_layers(const MixedPrecision& mixed, const std::vector<std::string>& parameters,
                       const SourceLocation& location);

}  // namespace paddle::train
