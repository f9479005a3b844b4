// The headers of commands, compiled once.
#include "common_headers.h"

#include <nlohmann/json.hpp>
