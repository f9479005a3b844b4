#pragma once
// Kernels of operations that need more than memory: files of images, and the other ranks of a run.
// They are in a room of their own, so that kernels depend neither on formats nor on transports.

namespace paddle::io_kernels {

/// Registers them for the backend "cpu"; the schema names them (`kernel: io_kernels::NAME`).
void register_kernels();

}  // namespace paddle::io_kernels
