#pragma once
// Parsing of source locations as traced operations carry them: "model.yaml:6:5".

#include <string>

#include "base/error.h"

namespace paddle {

/// Empty if the text has another form.
SourceLocation parse_source_location(const std::string& text);

}  // namespace paddle
