#pragma once
// The folder that `data://` means in configs.

#include <string>

namespace paddle::data {

/// The folder of downloaded data: $PADDLE_DATA, or paddle/data in $XDG_CACHE_HOME or ~/.cache.
std::string data_folder();

}  // namespace paddle::data
