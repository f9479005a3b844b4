#include "common_device.h"

#include <cstdlib>

#include "common.h"
#include "common_options.h"
#include "inspect/isolate.h"
#include "ops/core/kernel.h"
#include "runtime/execute.h"
#include "runtime/host_fallback.h"
#include "runtime/plan_graphs.h"
#include "tensor/named_device.h"

namespace paddle::cli {

void add_device_options(App& app, DeviceOptions& options) {
  app.add_option("--device", options.name,
                 "where to compute: cpu, cuda or cuda:N (an NVIDIA GPU), or mirror, which tests "
                 "programs for devices on the CPU")
      ->capture_default_str();
  app.add_flag("--no-host-fallback", options.no_host_fallback,
               "reject operations that the device has no kernel for, instead of running them on "
               "the host");
}

Device open_device(const DeviceOptions& options) {
  runtime::register_backends();
  runtime::allow_host_fallback(!options.no_host_fallback);
  return parse_device(options.name);
}

Device open_device_in_children(const DeviceOptions& options) {
  runtime::register_backends();
  runtime::allow_host_fallback(!options.no_host_fallback);
  const Device device = named_device(options.name);
  const auto open = [&](size_t) -> std::string {
    try {
      parse_device(options.name);
      return "";
    } catch (const Error& error) {
      return str(static_cast<int>(error.code()), " ", error.message());
    }
  };
  std::string problem;
  const auto report = [&](size_t, const std::string& line) { problem = line; };
  if (!device.is_cpu()) inspect::run_isolated(1, open, report, {});
  if (problem.empty()) return device;
  const size_t space = problem.find(' ');
  const int code = std::atoi(problem.c_str());
  if (code > 0) fail(static_cast<ErrorCode>(code), problem.substr(space + 1));
  fail(ErrorCode::kDevice, "device '", options.name, "': ", problem);
}

void report_host_fallbacks() {
  std::string line;
  for (const auto& [operation, count] : runtime::host_fallbacks())
    line += str(line.empty() ? "" : ", ", operation, " (", count, ")");
  if (!line.empty()) print_warning("operations that ran on the host: " + line);
}

void check_runs_language_models(Device device) {
  for (const char* operation : {"packed_linear", "cached_attention"})
    if (!has_kernel(get_op(operation), {.device = device}))
      fail(ErrorCode::kUsage, "--device: ", device.text(), " has no kernel of ", operation,
           ", which language models need");
}

void check_runs_ranks(Device device) {
  if (!has_kernel(get_op("comm.all_reduce"), {.device = device}))
    fail(ErrorCode::kUsage, "--device: ", device.text(),
         " has no kernel of comm.all_reduce, which runs of several ranks need");
}

void report_graphs() {
  const runtime::GraphReport report = runtime::all_graphs();
  if (report.graphs == 0) return;
  print_note(str("recorded ", report.captured, " of ", report.instructions, " instructions, in ",
                 report.segments, " segments and ", report.graphs, " graphs"));
  if (report.changed > 0)
    print_note(str(report.changed,
                   " runs were not recorded because the addresses of their inputs kept changing"));
}

}  // namespace paddle::cli
