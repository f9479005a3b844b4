#pragma once
// Operations that a device has no kernel for run on the host, between copies. That is slow, so it
// is counted by name and can be rejected.

#include <map>
#include <string>
#include <vector>

#include "ops/core/kernel.h"

namespace paddle::runtime {

/// The implementation of such a kernel begins with this.
inline constexpr const char* kOnHost = "host:";

/// Notes one run of the operation on the host for the device; kDevice if that is rejected.
void count_host_fallback(const Op& op, Device device);
/// kDevice, naming the operation, if running it on the host is rejected.
void check_host_fallback(const Op& op, Device device);
/// Runs on the host so far, by operation.
std::map<std::string, int64_t> host_fallbacks();
/// Whether operations may run on the host; true at first.
void allow_host_fallback(bool allow);

/// A kernel that copies its operands to the host, runs there, and copies the results back. Null if
/// the CPU has no kernel either. The request is that of the device; its operands are contiguous.
std::unique_ptr<Kernel> prepare_host_fallback(const KernelRequest& request);

}  // namespace paddle::runtime
