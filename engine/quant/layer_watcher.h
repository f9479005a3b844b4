#pragma once
// Watches the layers of a model's function while it is replayed.

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "quant/layers.h"
#include "tensor/region_depth.h"

namespace paddle::quant {

/// Calls `met(layer, call, results)` for these layers of a trace, after the interpreter below.
/// Layers in control flow are not met.
class LayerWatcher final : public RegionDepth {
 public:
  using Met = std::function<void(size_t layer, const OpCall& call, const Tensors& results)>;
  LayerWatcher(const Quantizable& model, const std::vector<size_t>& layers, Met met)
      : model_(model), layers_(layers.begin(), layers.end()), met_(std::move(met)) {}

  Tensors apply(const OpCall& call) override {
    const auto is_constant = [&](size_t i) {
      return call.operands.size() > i && call.operands[i].defined() &&
             call.operands[i].is_concrete();
    };
    const bool meets =
        depth() == 0 && is_layer(call.op, is_constant(0), is_constant(1), model_.has_products());
    const size_t layer = meets ? next_layer_++ : 0;
    Tensors results = next().apply(call);
    if (meets && layers_.contains(layer)) met_(layer, call, results);
    return results;
  }

 private:
  const Quantizable& model_;
  std::set<size_t> layers_;
  Met met_;
  size_t next_layer_ = 0;
};

}  // namespace paddle::quant
