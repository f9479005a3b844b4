#pragma once
// Tables and timelines of a profile: where the time of a run went, per operation and per
// instruction, against the machine's peaks.

#include <string>

#include "profile/peaks.h"
#include "runtime/profile.h"

namespace paddle::profile {

/// Two tables for people: by operation and implementation, and the `count` most costly instructions
/// with their shapes.
std::string table(const runtime::Profile& profile, const Peaks& peaks, size_t count = 20);

/// The events in the JSON form that chrome://tracing and Perfetto read. Throws kDevice if the file
/// can't be written.
void write_trace(const runtime::Profile& profile, const std::string& path);

}  // namespace paddle::profile
