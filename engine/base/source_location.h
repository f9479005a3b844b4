#pragma once
// Where an operation of a traced program comes from, as the text that operations carry:
// "model.yaml:6:5", "model.yaml:6:5 @encoder.0.linear" for an operation of a layer, and with
// " (gradient)" at the end for one that a gradient rule added.

#include <string>

#include "base/error.h"

namespace paddle {

struct Origin {
  std::string place = {};  ///< "model.yaml:6:5", or empty
  std::string layer = {};  ///< path of the layer or block, such as "encoder.0.linear", or empty
  bool gradient = false;   ///< computed for the gradient of what is at this place
};

std::string text(const Origin& origin);
Origin parse_origin(const std::string& text);
/// The place of an origin. Empty if the text has another form.
SourceLocation parse_source_location(const std::string& text);

}  // namespace paddle
