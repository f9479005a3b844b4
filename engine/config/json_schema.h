#pragma once
// A schema as a JSON Schema document (draft 2020-12), which editors use for completion and checks.

#include <string>

#include "config/schema.h"

namespace paddle::config {

/// `title` names the kind of document. The text ends with a newline.
std::string json_schema(const Schema& schema, const std::string& title);

}  // namespace paddle::config
