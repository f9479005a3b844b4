#include "base/strict.h"

#include <cstdlib>

namespace paddle {

bool internal_errors_are_fatal() { return std::getenv("PADDLE_STRICT") != nullptr; }

}  // namespace paddle
