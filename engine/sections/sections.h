#pragma once
// All sections of shared configs (config/sections.h).

namespace paddle {

/// Registers the sections that the rooms read. For programs, before they read a config; a second
/// call changes nothing.
void register_sections();

}  // namespace paddle
