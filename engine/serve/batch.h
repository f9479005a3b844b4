#pragma once
// A file of requests instead of a server, in the format of OpenAI's batches: one JSON object a
// line.

#include <cstdint>
#include <functional>
#include <string>

#include "serve/serve_config.h"

namespace paddle::serve {

struct BatchOptions {
  std::string requests, output;  ///< files of lines
  bool resume = false;           ///< keep the answers that the output has
  int64_t streams = 8;           ///< sequences generated at a time
};

struct BatchResult {
  int64_t answered = 0, rejected = 0;  ///< by this run
  int64_t kept = 0;                    ///< answers of an earlier run
  int64_t total = 0;
};

/// Answers all requests of the file; answers are in the order in which they end. `proceed` is
/// called with what is done so far, and ends the run early where it returns false; finished answers
/// are kept. kData with the line for requests that are not of the format, before any is answered.
BatchResult run_batch(const ModelEntry& model, const BatchOptions& options,
                      const std::function<bool(const BatchResult&)>& proceed);

}  // namespace paddle::serve
