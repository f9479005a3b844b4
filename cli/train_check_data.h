#pragma once
// `paddle-train --check-data`.

#include <string>

#include "train/config/run_config.h"

namespace paddle::cli {

/// Prints what the data of a config is and reads all of its samples: bad ones are listed with file,
/// row and reason. `pictures`: a folder for a page of samples after all transforms, or "". kData
/// for a sample that would end the training.
void check_data(const train::RunConfig& config, const std::string& pictures);

}  // namespace paddle::cli
