#pragma once
// The stages of long work and their steps, as it reports them while it runs.

#include <cstdint>
#include <functional>
#include <string>

namespace paddle::quant {

/// A stage by its name, or a step of one: `done` of `total` are done. `done` is 0 where a
/// stage begins, unless it continues earlier work.
struct Step {
  std::string what;
  int64_t done = 0, total = 0;  ///< total: 0 where the length is not known
};

using Progress = std::function<void(const Step&)>;

}  // namespace paddle::quant
