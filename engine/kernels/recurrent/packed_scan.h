#pragma once
// Steps of recurrent layers over a weight that is packed once per run: with enough rows and steps,
// packing costs little and each step runs near the peak of the processor.

#include "kernels/recurrent/scan.h"

namespace paddle::cpu {

/// The products of a forward pass, or of a backward pass.
std::unique_ptr<ScanGemm<float>> packed_scan_gemm(const ScanShape& shape, bool backward);

}  // namespace paddle::cpu
