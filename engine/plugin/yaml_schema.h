#pragma once
// The form of files NAME.plugin.yaml, for editors.

#include "config/schema.h"

namespace paddle::plugin {

/// Entries of operations and losses are those of the engine's schema (docs/design/new_operator.md),
/// which are checked elsewhere.
config::Schema yaml_schema();

}  // namespace paddle::plugin
