#pragma once
// Places in a user's text, as operations of a traced program carry them: "model.yaml:6:5".

#include <string>

#include "base/error.h"

namespace paddle {

/// An empty place for a text of another form.
Place parse_place(const std::string& text);

}  // namespace paddle
