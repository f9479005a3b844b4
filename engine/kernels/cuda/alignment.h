#pragma once
// Losses of sequences over their alignments: CTC and RNN transducers.

#include "ops/core/kernel.h"

namespace paddle::cuda {

std::unique_ptr<Kernel> prepare_ctc_alignment(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_ctc_occupancy(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_rnnt_alignment(const KernelRequest& request);
std::unique_ptr<Kernel> prepare_rnnt_occupancy(const KernelRequest& request);

}  // namespace paddle::cuda
