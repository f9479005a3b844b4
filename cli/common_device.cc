#include "common_device.h"

#include "common.h"
#include "common_options.h"
#include "runtime/execute.h"
#include "runtime/host_fallback.h"

namespace paddle::cli {

void add_device_options(App& app, DeviceOptions& options) {
  app.add_option("--device", options.name,
                 "where to compute: cpu, or mirror, which tests programs for devices on the CPU")
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

void report_host_fallbacks() {
  std::string line;
  for (const auto& [operation, count] : runtime::host_fallbacks())
    line += str(line.empty() ? "" : ", ", operation, " (", count, ")");
  if (!line.empty()) print_error("warning: operations that ran on the host: " + line);
}

}  // namespace paddle::cli
