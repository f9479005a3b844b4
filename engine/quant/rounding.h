#pragma once
// Methods that choose the integers of a weight so that the layer's result changes least: the error
// of a row is d H dᵀ, with d its change and H the second moments of the inputs.

#include "quant/moments.h"
#include "quant_common/weights.h"

namespace paddle::quant {

/// GPTQ (Frantar et al., 2022): features in order of falling second moment; the error of each is
/// made up for by the features after it. `damp` is added to the diagonal of H as a share of its
/// mean.
QuantizedWeight gptq(const WeightRows& rows, const WeightFormat& format, const Moments& moments,
                     double damp = 0.01);

/// The objective of AdaRound (Nagel et al., 2020), by coordinate descent (as QuantEase, Behdin et
/// al., 2023): passes over the features of a row, each set to the integer that is best given the
/// others, until nothing changes. Starts from `start`, and is never worse than it.
QuantizedWeight descend(const WeightRows& rows, QuantizedWeight start, const Moments& moments,
                        int most_passes = 20);

/// The weight W C H⁻¹ that, on inputs x' of the quantized model, comes nearest to what `rows` W
/// gives on inputs x of the float model: H is the mean of x' x'ᵀ, C that of x x'ᵀ.
WeightRows compensated(const WeightRows& rows, const PairedMoments& moments, double damp = 0.01);

/// d H dᵀ summed over rows, for d the rounding error.
double rounding_error(const WeightRows& rows, const QuantizedWeight& weight,
                      const Moments& moments);

}  // namespace paddle::quant
