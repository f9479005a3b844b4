#pragma once
// Runs a model on random inputs of sizes that it takes.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "program/model.h"

namespace paddle::exporter {

struct SampleRun {
  std::map<std::string, int64_t> sizes;  ///< of the symbolic dims
  std::vector<Array> inputs, outputs;
};

/// The symbolic dims of the inputs, sorted.
std::vector<std::string> free_symbols(const program::Model& model);

/// Random inputs and what the model makes of them; other sizes and values for each `binding` (0, 1,
/// …). Sizes that the model rejects are replaced by larger ones; nullopt if it takes none of those
/// that are tried; `rejection` is then why it did not take the first. `fixed` gives sizes of some
/// dims.
std::optional<SampleRun> run_on_samples(program::Model& model,
                                        const std::map<std::string, int64_t>& fixed,
                                        int64_t binding, std::string* rejection = nullptr);

}  // namespace paddle::exporter
