#pragma once
// The JSON form of PIR, PaddlePaddle's intermediate representation.

#include <string>

#include "formats/paddle_program.h"

namespace paddle::formats {

/// kModel, with `path`, if the text is not a program.
PaddleProgram read_pir(const std::string& text, const std::string& path);

}  // namespace paddle::formats
