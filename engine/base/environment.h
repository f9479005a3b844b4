#pragma once
// Variables of the environment.

#include <string>

namespace paddle {

/// The value of a variable; "" if it is not set.
std::string environment(const char* name);

}  // namespace paddle
