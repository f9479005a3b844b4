#include "common_benchmark.h"

#include <sys/resource.h>
#include <algorithm>
#include <chrono>
#include <functional>

#include <nlohmann/json.hpp>

#include "base/parallel.h"
#include "common.h"
#include "runtime/execute.h"

namespace paddle::cli {
namespace {

/// Samples of one run: the first axis of its first input.
double rows_of(const Dims& first) { return first.empty() ? 1.0 : static_cast<double>(first[0]); }

/// Times `once` and prints a line; `flops` of one run.
void time_runs(const program::Model& model, Device device, int64_t steps, double rows,
               const std::function<void()>& once, const std::function<double()>& flops) {
  std::vector<double> times;
  for (int64_t i = 0; i < steps + 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    once();
    if (i >= 3)
      times.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
              .count());
  }
  std::sort(times.begin(), times.end());
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  nlohmann::ordered_json o;
  o["median_ms"] = times[times.size() / 2];
  o["min_ms"] = times[0];
  o["peak_mib"] = static_cast<double>(usage.ru_maxrss) / 1024;
  o["samples_per_second"] = 1e3 * rows / times[times.size() / 2];
  o["steps"] = times.size();
  o["threads"] = thread_count();
  o["device"] = device.text();
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

}  // namespace

void run_benchmark(program::Model& model, Device device, int64_t steps,
                   const std::vector<Array>& inputs) {
  time_runs(
      model, device, steps, rows_of(inputs.empty() ? Dims() : inputs[0].shape),
      [&] {
        for (const Array& result : model.run(inputs)) read_result(result, inputs);
      },
      [&] { return model.flops(inputs); });
}

void run_benchmark(program::Model& model, Device device, int64_t steps,
                   const onnx::Values& inputs) {
  onnx::Session& session = *model.onnx();
  const bool rows =
      !inputs.empty() && (inputs[0].is_tensor() || inputs[0].kind() == onnx::Value::Kind::kStrings);
  std::vector<Array> arrays;
  for (const onnx::Value& v : inputs)
    if (v.is_tensor()) arrays.push_back(v.tensor().array());
  time_runs(
      model, device, steps, rows_of(rows ? concrete(inputs[0].shape()) : Dims()),
      [&] {
        for (const onnx::Value& v : session.run(inputs))
          if (v.is_tensor()) read_result(v.tensor().array(), arrays);
      },
      [&] { return session.flops(inputs); });
}

}  // namespace paddle::cli
