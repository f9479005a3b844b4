#include "base/environment.h"

#include <cstdlib>

namespace paddle {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

}  // namespace paddle
