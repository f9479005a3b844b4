#include "llm/benchmark.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace paddle::llm {

namespace {

double seconds_of(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

tokenizers::TokenId token_at(int64_t i, int64_t vocab_size) {
  return static_cast<tokenizers::TokenId>(i * 7919 % vocab_size);
}

StreamSpeed measure(Runner& runner, const BenchmarkOptions& options, int64_t streams,
                    const std::function<bool()>& proceed) {
  const std::vector<tokenizers::TokenId> prompt = any_tokens(options.prefill, runner.vocab_size());
  std::vector<double> prefill, decode;
  // The first repeat makes the plans.
  for (int64_t repeat = 0; repeat <= options.repeats && proceed(); ++repeat) {
    for (int64_t s = 0; s < streams; ++s) runner.truncate(s, 0);
    const double reading = seconds_of([&] {
      for (int64_t s = 0; s < streams; ++s) runner.append(s, prompt);
    });
    const double writing = seconds_of([&] {
      for (int64_t i = 0; i < options.decode; ++i) {
        const tokenizers::TokenId token = token_at(i, runner.vocab_size());
        std::vector<StepPart> parts;
        for (int64_t s = 0; s < streams; ++s) parts.push_back({s, {&token, 1}, 1});
        runner.step(parts);
      }
    });
    if (repeat == 0) continue;
    prefill.push_back(reading);
    decode.push_back(writing);
  }
  if (prefill.empty()) return {streams, 0, 0};
  const auto count = static_cast<double>(streams);
  return {streams, count * static_cast<double>(options.prefill) / median(prefill),
          count * static_cast<double>(options.decode) / median(decode)};
}

}  // namespace

std::vector<tokenizers::TokenId> any_tokens(int64_t count, int64_t vocab_size) {
  std::vector<tokenizers::TokenId> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(token_at(i, vocab_size));
  return tokens;
}

BenchmarkResult benchmark(const std::shared_ptr<LoadedModel>& model,
                          const BenchmarkOptions& options, const std::function<bool()>& proceed) {
  const int64_t length = options.prefill + options.decode;
  if (length > model->context())
    fail(ErrorCode::kUsage, "--prefill and --decode are ", length,
         " tokens; the model's context is ", model->context());
  const int64_t most = *std::max_element(options.streams.begin(), options.streams.end());
  if (most > Runner::kMaxRows)
    fail(ErrorCode::kUsage, "--streams is ", most, ", expected at most ", Runner::kMaxRows);
  Runner runner(model, {.sequences = most,
                        .context = length,
                        .cache = options.cache,
                        .adapter = options.adapter,
                        .chunk = options.chunk,
                        .paged = options.paged});
  BenchmarkResult out;
  for (const int64_t streams : options.streams)
    if (proceed()) out.speeds.push_back(measure(runner, options, streams, proceed));
  out.kernels = runner.kernels(1);
  return out;
}

}  // namespace paddle::llm
