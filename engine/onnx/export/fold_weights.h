#pragma once
// Weights of recurrent operators in the order of ONNX: Slice, Concat and other nodes that only move
// elements of initializers become initializers, so that they are not run at every inference and an
// LSTM stays one node however often it is exported.

#include "onnx/export/export.h"

namespace paddle::onnx {

/// `weights` is the lookup of the export; where weights are deferred, the new ones are too
/// (ExportedModel::weight). A weight that something else reads stays as it is.
void fold_recurrent_weights(ExportedModel& exported, const WeightLookup& weights);

}  // namespace paddle::onnx
