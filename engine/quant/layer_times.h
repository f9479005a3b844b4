#pragma once
// Which layers win: each is timed by itself, in floats and quantized.

#include "quant/calibration.h"

namespace paddle::quant {

/// Measures every quantized layer on one sample: the signal-to-noise ratio of its result in the
/// quantized model, and, if `times`, how long it takes in floats and in integers (between other
/// layers of integers, for static activations).
void measure_layers(Quantizable& model, const std::vector<Array>& inputs,
                    const WeightSource& weight, bool times, const Progress& progress);

/// Layers that were slower in integers go back to floats, with the reason. Returns their number.
int64_t keep_slow_layers_float(std::vector<Layer>& layers);

}  // namespace paddle::quant
