// The headers of commands and of the rooms with less optimization, compiled once for all.
#include "common_headers.h"

#include <nlohmann/json.hpp>
