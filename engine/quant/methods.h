#pragma once
// Methods that change the float weights of a model so that quantization loses less. The function
// computes the same as before, up to float rounding, except for bias correction.

#include <string>
#include <vector>

#include "quant/moments.h"

namespace paddle::quant {

/// Cross-layer equalization (Nagel et al., 2019): channels between two layers with nothing or a
/// ReLU between them get the same range in both weights. Returns the number of pairs.
int64_t equalize(Quantizable& model);

/// SmoothQuant (Xiao et al., 2022): features of large activations are scaled down in the norm that
/// computes them, and up in the weights that read them. `largest` is the largest magnitude of each
/// feature, for layers that are read from a norm. Returns the number of norms.
int64_t smooth(Quantizable& model, const std::vector<std::vector<float>>& largest, double alpha);

/// AWQ (Lin et al., 2023): the same scaling, for weights: by the root mean square of features to
/// the power, from 0 to 1, that leaves the least error of results. `moments` are those of layers
/// that are read from a norm. Returns the number of norms.
int64_t scale_by_activations(Quantizable& model, const std::vector<Moments>& moments);

/// The layers of which a scaling takes moments: those that a norm with a weight is read by.
std::vector<size_t> layers_after_norms(const Quantizable& model);

/// Takes the mean change of a layer's result, which quantization of its weight causes, out of its
/// bias. False if it has no place for one.
bool correct_bias(Quantizable& model, size_t layer, const Moments& moments);

}  // namespace paddle::quant
