#pragma once
// The keys of a training config, as other tools check them.

namespace paddle::train {

/// Registers the keys (config/sections.h), so that tools which read one section of a training
/// config check the rest as the trainer does.
void register_run_keys();

}  // namespace paddle::train
