#pragma once
// The commands of paddle-quant that change float weights: prune and merge.

#include <string>
#include <vector>

#include "common_options.h"
#include "quant/merge_lora.h"
#include "quant/prune.h"
#include "quant_command.h"

namespace paddle::cli {

/// `paddle quant prune`.
struct PruneOptions {
  quant::PruneJob job;
  std::string kind = "2:4", by = "magnitude";
  std::vector<std::string> data, evaluation;
  bool no_check = false, json = false;

  void add_to(App& app);
};
/// Returns the exit status.
int run_prune(PruneOptions& options);

/// `paddle quant merge`.
struct MergeOptions {
  quant::MergeJob job;
  double scale = 0;
  Option* scale_option = nullptr;
  bool json = false;

  void add_to(App& app);
};
/// Returns the exit status.
int run_merge(MergeOptions& options);

}  // namespace paddle::cli
