// The headers of commands, compiled once.
#include "common_headers.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
