#pragma once
// A model file, opened and checked as far as its text alone allows.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "onnx/graph/value.h"

namespace paddle::onnx {

struct OpenModel {
  std::shared_ptr<const formats::onnx::Model> model;
  /// What a caller gives: the graph's inputs without those that initialisers stand for, unless
  /// the caller has values for these too.
  std::vector<formats::onnx::ValueInfo> inputs;
  std::vector<size_t> positions;  ///< of `inputs` among the graph's inputs

  /// One value per input of the graph, from one per input that a caller gives.
  Values arguments(const Values& given) const;
  /// Shapes of the inputs, with a symbol for each size that has no name; none where not even the
  /// rank is known.
  std::vector<std::optional<Shape>> input_shapes() const;
  /// Types of the inputs with these shapes; none if one of them has no full type or is no tensor.
  std::vector<TensorType> input_types() const;
};

/// Reads the file and refuses operators that are not known. kModel. Values will be given for the
/// inputs called `given`, whether initialisers stand for them or not.
OpenModel open_model(const std::string& path, const std::set<std::string>& given = {});

}  // namespace paddle::onnx
