#pragma once
// The device `mirror`: host memory that the host cannot read, computed on by the CPU's kernels. It
// needs no hardware and finds what a real device would suffer from. Addresses of its memory are
// invalid for the CPU, so that a forgotten copy crashes, and its streams run as late as they may,
// so that a missing wait gives wrong results. Results are those of the CPU bit for bit.

#include "ops/core/fused.h"
#include "ops/core/kernel.h"

namespace paddle::mirror {

/// Registers the device and its backend, once.
void register_device();
/// Operations that have no kernel on the device from now on, to test what happens then.
void set_missing_kernels(std::vector<std::string> operations);
/// Pieces of work that are queued on all streams and that nobody has waited for.
uint64_t queued_work();

}  // namespace paddle::mirror
