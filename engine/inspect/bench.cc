#include "inspect/bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/elapsed.h"
#include "base/parallel.h"
#include "compiler/passes/passes.h"
#include "ir/tracer.h"
#include "profile/peaks.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace paddle::inspect {
namespace {

struct Timing {
  std::vector<double> ms;  ///< sorted
  double flops = 0, bytes = 0;
  std::string implementation;
};

double bytes_of(const Array& a) { return static_cast<double>(storage_bytes(a.dtype, a.size())); }

std::shared_ptr<ir::Function> trace(const TensorFn& fn, const std::vector<Array>& inputs) {
  auto function = std::make_shared<ir::Function>("bench");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const RandomScope random(Tensor(Array::from<uint64_t>({7, 1}, {2})));
    Tensors traced;
    for (const Array& x : inputs)
      traced.push_back(tracer.input({ir::PortKind::kValue, str("x", traced.size())},
                                    {x.dtype, to_shape(x.shape)}));
    size_t i = 0;
    for (const Tensor& t : fn(traced)) tracer.output({ir::PortKind::kValue, str("y", i++)}, t);
  }
  passes::remove_dead_code(*function);
  return function;
}

/// The call prepared with the kernels of one backend (empty: those that are chosen by themselves).
struct Contestant {
  runtime::Executable executable;
  Timing timing;

  Contestant(const std::shared_ptr<ir::Function>& function, const std::vector<Array>& inputs,
             const std::string& backend)
      : executable(function) {
    std::optional<BackendScope> scope;
    if (!backend.empty()) scope.emplace(backend);
    std::vector<Layout> layouts;
    for (const Array& x : inputs) {
      layouts.push_back(Layout::of(x));
      timing.bytes += bytes_of(x);
    }
    for (const Array& y : executable.run(inputs)) timing.bytes += bytes_of(y);
    const runtime::Plan& plan = executable.plan(layouts);
    timing.flops = plan.flops();
    std::vector<std::string> names;
    for (const runtime::Instruction& i : plan.instructions()) {
      const std::string name = i.kernel ? i.kernel->implementation() : "dynamic";
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    timing.implementation = join(names, " + ");
  }
};

/// Runs the contestants in turn, so that what else the machine does meets all alike.
std::vector<Timing> time_function(const TensorFn& fn, const std::vector<Array>& inputs,
                                  const std::vector<std::string>& backends, double seconds) {
  using Clock = std::chrono::steady_clock;
  runtime::register_backends();
  const auto function = trace(fn, inputs);
  std::vector<std::unique_ptr<Contestant>> contestants;
  for (const std::string& backend : backends)
    contestants.push_back(std::make_unique<Contestant>(function, inputs, backend));
  const auto begin = Clock::now();
  const double limit = seconds * static_cast<double>(contestants.size());
  const std::vector<double>& first = contestants[0]->timing.ms;
  while (first.size() < 1000000 && (seconds_since(begin) < limit || first.size() < 5)) {
    const bool counts = seconds_since(begin) > limit / 10;
    for (const auto& c : contestants) {
      const auto start = Clock::now();
      c->executable.run(inputs);
      if (counts) c->timing.ms.push_back(seconds_since(start) * 1e3);
    }
  }
  std::vector<Timing> out;
  for (const auto& c : contestants) {
    std::sort(c->timing.ms.begin(), c->timing.ms.end());
    out.push_back(std::move(c->timing));
  }
  return out;
}

}  // namespace

std::vector<BenchResult> bench(const NamedCall& call, const BenchOptions& options) {
  const auto fn = [&](const Tensors& t) {
    Tensors results = call(t);
    if (options.first_result) results.resize(1);
    return results;
  };
  std::vector<std::string> backends = options.backends;
  if (backends.empty()) backends.emplace_back();
  const auto timings = time_function(fn, call.inputs(), backends, options.seconds);
  const profile::Peaks peaks = profile::measure_peaks();
  std::vector<BenchResult> out;
  for (const Timing& own : timings) {
    BenchResult r;
    r.median_ms = own.ms[own.ms.size() / 2];
    r.min_ms = own.ms[0];
    r.runs = static_cast<int64_t>(own.ms.size());
    r.gflops = own.flops / r.median_ms / 1e6;
    r.gigabytes = own.bytes / r.median_ms / 1e6;
    r.peak_gflops = peaks.gflops;
    r.peak_gigabytes = peaks.gigabytes;
    r.share = std::max(r.gflops / r.peak_gflops, r.gigabytes / r.peak_gigabytes);
    r.implementation = own.implementation;
    out.push_back(std::move(r));
  }
  return out;
}

std::string text(const BenchResult& r) {
  const std::string line = fmt::format(
      "{:.4f} ms (best {:.4f} of {})  {:.1f} GFLOP/s  {:.1f} GB/s  {:.0f}% of peak ({:.0f} "
      "GFLOP/s, {:.0f} GB/s)  ",
      r.median_ms, r.min_ms, static_cast<long>(r.runs), r.gflops, r.gigabytes, 100 * r.share,
      r.peak_gflops, r.peak_gigabytes);
  return line + r.implementation + "\n";
}

std::string json(const BenchResult& r, const std::string& op) {
  const nlohmann::ordered_json o = {{"op", op},
                                    {"median_ms", r.median_ms},
                                    {"min_ms", r.min_ms},
                                    {"runs", r.runs},
                                    {"gflops", r.gflops},
                                    {"gigabytes_per_second", r.gigabytes},
                                    {"peak_gflops", r.peak_gflops},
                                    {"peak_gigabytes_per_second", r.peak_gigabytes},
                                    {"share_of_peak", r.share},
                                    {"implementation", r.implementation},
                                    {"threads", thread_count()}};
  return o.dump() + "\n";
}

}  // namespace paddle::inspect
