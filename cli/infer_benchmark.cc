#include "infer_benchmark.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include <nlohmann/json.hpp>

#include "base/parallel.h"
#include "base/resident_memory.h"
#include "common.h"
#include "infer/streams.h"
#include "runtime/execute.h"

namespace paddle::cli {
namespace {

/// Samples of one run: the first axis of its first input.
double rows_of(const Dims& first) { return first.empty() ? 1.0 : static_cast<double>(first[0]); }

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

constexpr int64_t kWarmUp = 3;

/// The times of runs in ms, and of all of them together where streams run in parallel.
struct Times {
  std::vector<double> runs;
  double wall = 0;
};

Times time_runs(int64_t steps, const std::function<void()>& once) {
  Times times;
  for (int64_t i = 0; i < kWarmUp; ++i) once();
  const auto first = Clock::now();
  for (int64_t i = 0; i < steps; ++i) {
    const auto begin = Clock::now();
    once();
    times.runs.push_back(milliseconds_since(begin));
  }
  times.wall = milliseconds_since(first);
  return times;
}

/// Prints the line; `rows` and `flops` are those of one run.
void report_times(const program::Model& model, const BenchmarkOptions& options, double rows,
                  Times times, const std::function<double()>& flops) {
  std::sort(times.runs.begin(), times.runs.end());
  const double median = times.runs[times.runs.size() / 2];
  const bool one = options.streams == 1;
  nlohmann::ordered_json o;
  o["median_ms"] = median;
  o["min_ms"] = times.runs[0];
  o["peak_mib"] = static_cast<double>(peak_resident_bytes()) / (1 << 20);
  o["samples_per_second"] =
      1e3 * rows * (one ? 1 / median : static_cast<double>(times.runs.size()) / times.wall);
  o["steps"] = times.runs.size();
  o["threads"] = thread_count();
  if (!one) o["streams"] = options.streams;
  o["device"] = options.device.text();
  o["dtype"] = text(model.precision());
  o["parameters"] = model.parameter_count();
  o["flops"] = flops();
  print(o.dump() + "\n");
}

/// Results that are views are copied out, so that their cost is in the time: a graph that ends in a
/// transpose leaves that work to who reads the result.
void read_result(const Array& result, const std::vector<Array>& inputs) {
  const auto is_input = [&](const Array& a) { return a.storage == result.storage; };
  if (!result.is_contiguous() || std::any_of(inputs.begin(), inputs.end(), is_input))
    runtime::copied(result);
}

void run_once(program::Model& model, const std::vector<Array>& inputs) {
  for (const Array& result : model.run(inputs)) read_result(result, inputs);
}

/// Streams run the same inputs in parallel.
Times time_streams(const program::Model& model, const BenchmarkOptions& options,
                   const std::vector<Array>& inputs) {
  infer::Streams streams(model, options.streams, thread_count());
  streams.run([&](size_t i) {
    for (int64_t run = 0; run < kWarmUp; ++run) run_once(streams.model(i), inputs);
  });
  std::vector<std::vector<double>> of_streams(streams.size());
  Times times;
  const auto first = Clock::now();
  streams.run([&](size_t i) {
    for (int64_t run = 0; run < options.steps; ++run) {
      const auto begin = Clock::now();
      run_once(streams.model(i), inputs);
      of_streams[i].push_back(milliseconds_since(begin));
    }
  });
  times.wall = milliseconds_since(first);
  for (const auto& each : of_streams) times.runs.insert(times.runs.end(), each.begin(), each.end());
  return times;
}

}  // namespace

void run_benchmark(program::Model& model, const BenchmarkOptions& options,
                   const std::vector<Array>& inputs) {
  const double rows = rows_of(inputs.empty() ? Dims() : inputs[0].shape);
  if (options.streams > 1) run_once(model, inputs);  // compiles what the streams share
  Times times = options.streams > 1 ? time_streams(model, options, inputs)
                                    : time_runs(options.steps, [&] { run_once(model, inputs); });
  report_times(model, options, rows, std::move(times), [&] { return model.flops(inputs); });
}

void run_benchmark(program::Model& model, const BenchmarkOptions& options,
                   const onnx::Values& inputs) {
  onnx::Session& session = *model.onnx();
  const bool has_rows =
      !inputs.empty() && (inputs[0].is_tensor() || inputs[0].kind() == onnx::Value::Kind::kStrings);
  std::vector<Array> arrays;
  for (const onnx::Value& v : inputs)
    if (v.is_tensor()) arrays.push_back(v.tensor().array());
  Times times = time_runs(options.steps, [&] {
    for (const onnx::Value& v : session.run(inputs))
      if (v.is_tensor()) read_result(v.tensor().array(), arrays);
  });
  report_times(model, options, rows_of(has_rows ? concrete(inputs[0].shape()) : Dims()),
               std::move(times), [&] { return session.flops(inputs); });
}

}  // namespace paddle::cli
