#pragma once
// The options that paddle-quant and its commands on one model share.

#include <string>
#include <vector>

#include "quant/quant_job.h"
#include "quant_command.h"

namespace paddle::cli {

struct QuantOptions {
  std::vector<std::string> arguments, data, evaluation, keep_float, accept, dims;
  std::string file, scheme, observer, drop, target, statistics, scales = "plain";
  int64_t samples = 0, batch = 0;
  double percentile = 0;
  bool json = false;
  quant::QuantJob job;

  void add_to(App& app);
  /// The job of a command line; options are overrides of the configuration.
  quant::QuantJob& read(const char* command);
  quant::Progress progress() const { return quant_progress(json); }
};

}  // namespace paddle::cli
