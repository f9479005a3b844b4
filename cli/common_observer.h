#pragma once
// An observer for commands that train or evaluate without showing progress.

#include <string>

#include "common.h"
#include "train/job/trainer.h"

namespace paddle::cli {

/// Prints warnings to standard error, and nothing else.
class WarningObserver final : public train::TrainObserver {
 public:
  void warn(const std::string& line) override { print_warning(line); }
};

}  // namespace paddle::cli
