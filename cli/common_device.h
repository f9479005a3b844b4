#pragma once
// The option `--device` of tools that compute.

#include <string>

#include "tensor/device.h"

namespace paddle::cli {

class App;

struct DeviceOptions {
  std::string name = "cpu";
  bool no_host_fallback = false;
};

/// Adds `--device` and `--no-host-fallback`.
void add_device_options(App& app, DeviceOptions& options);
/// The device that was asked for, with all backends registered; kUsage if there is none.
Device open_device(const DeviceOptions& options);
/// The same for a command whose work is done by child processes: a child opens the device and looks
/// whether it is there, this process does not.
Device open_device_in_children(const DeviceOptions& options);
/// One line on standard error for the operations that ran on the host instead of the device.
void report_host_fallbacks();
/// kUsage if the device lacks the kernels that language models spend their time in.
void check_runs_language_models(Device device);
/// kUsage if the device lacks the kernels that several ranks exchange tensors with.
void check_runs_ranks(Device device);
/// A line that tells how many instructions were queued as recorded work, if any were.
void report_graphs();

}  // namespace paddle::cli
