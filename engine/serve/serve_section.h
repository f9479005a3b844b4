#pragma once
// The section `serve:` of a config, which is all of a serve.yaml: models, addresses and limits.

#include "config/schema.h"

namespace paddle::serve {

config::Schema serve_schema();
/// Registers the section (config/sections.h).
void register_section();

}  // namespace paddle::serve
