#pragma once
// Numbers as text by a pattern of printf.

#include <cstdio>
#include <string>

namespace paddle {

/// At most 511 characters; longer texts are cut.
std::string format(const char* pattern, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

}  // namespace paddle
