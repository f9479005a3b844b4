#pragma once
// How fast a model reads prompts and generates tokens, for one and for several streams at a time.

#include <functional>
#include <vector>

#include "llm/loaded_model.h"
#include "llm/runner.h"

namespace paddle::llm {

struct BenchmarkOptions {
  int64_t repeats = 3;  ///< the median is reported
  int64_t prefill = 256, decode = 64;
  std::vector<int64_t> streams = {1};
  CacheType cache = CacheType::kF32;
  std::string adapter = {};  ///< a folder of PEFT
  int64_t chunk = 0;         ///< as in RunnerOptions
  bool paged = false;        ///< as in RunnerOptions
};

struct StreamSpeed {
  int64_t streams = 1;
  double prefill = 0, decode = 0;  ///< tokens per second of all streams
};

/// The tokens of a measured prompt: any, since the time does not depend on them.
std::vector<tokenizers::TokenId> any_tokens(int64_t count, int64_t vocab_size);

struct BenchmarkResult {
  std::vector<StreamSpeed> speeds;
  std::vector<std::string> kernels;
};

/// kUsage for lengths that do not fit into the model's context. Stops early, with what it has,
/// where `proceed` returns false.
BenchmarkResult benchmark(const std::shared_ptr<LoadedModel>& model,
                          const BenchmarkOptions& options, const std::function<bool()>& proceed);

}  // namespace paddle::llm
