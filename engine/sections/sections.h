#pragma once
// All sections and keys of shared configs (config/sections.h).

namespace paddle {

/// Registers the sections and keys that the rooms read. For programs, before they read a config; a
/// second call changes nothing.
void register_sections();

}  // namespace paddle
