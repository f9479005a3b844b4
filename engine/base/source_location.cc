#include "base/source_location.h"

#include <cstdlib>

namespace paddle {

SourceLocation parse_source_location(const std::string& text) {
  const size_t column = text.rfind(':');
  if (column == std::string::npos || column == 0) return {};
  const size_t line = text.rfind(':', column - 1);
  if (line == std::string::npos) return {};
  return {text.substr(0, line), std::atoi(text.c_str() + line + 1),
          std::atoi(text.c_str() + column + 1)};
}

}  // namespace paddle
