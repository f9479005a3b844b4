#pragma once
// The matrix products of a transformer's layer as the shapes of one device, and the share of the
// peak that each shape reaches.

#include <vector>

#include "tune/parallel/cost_model.h"

namespace paddle::tune {

/// [tokens, inner] x [inner, outer], `count` times.
struct Product {
  double tokens = 0, inner = 0, outer = 0, count = 1;
  bool grouped = false;  ///< of experts: one of many small products in a kernel
  double flops() const { return 2 * tokens * inner * outer * count; }
};

/// The products of the forward pass of a layer over `tokens` tokens of a device: queries, keys and
/// values, output, and the feed-forward block, of which tensor parallelism leaves a device a part.
/// Tokens are spread evenly over experts.
std::vector<Product> products_of_layer(const Transformer& model, const Strategy& strategy,
                                       double tokens);

/// The share of a large product's rate that a product of this shape reaches, from 0 to 1. It falls
/// with each of the sizes, since tiles at edges, filling and draining weigh more.
double shape_efficiency(const Product& product);

}  // namespace paddle::tune
