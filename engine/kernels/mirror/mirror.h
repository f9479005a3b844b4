#pragma once
// The device `mirror`: host memory that the host cannot read, computed on by the CPU's kernels. It
// needs no hardware and finds bugs that a real device would show. Addresses of its memory are
// invalid for the CPU, so that a forgotten copy crashes, and its streams execute lazily, so that a
// missing wait gives wrong results. Results are those of the CPU bit for bit.

#include "ops/core/fused.h"
#include "ops/core/kernel.h"

namespace paddle::mirror {

/// Registers the device and its backend, once.
void register_device();
/// Operations that have no kernel on the device from now on, to test the fallback.
void set_missing_kernels(std::vector<std::string> operations);
/// Work items queued on all streams that have not been waited for.
uint64_t queued_work();

}  // namespace paddle::mirror
