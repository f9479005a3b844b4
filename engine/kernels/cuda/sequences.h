#pragma once
// Sequences that are stored one after another, frames that overlap, and paths of beams.

#include "ops/core/kernel.h"

namespace paddle::cuda {

/// sequence_rows and concat_ranges; they wait for the sum of the lengths.
std::unique_ptr<Kernel> prepare_ragged_rows(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_overlap_frames(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_gather_tree(const KernelRequest& request);

}  // namespace paddle::cuda
