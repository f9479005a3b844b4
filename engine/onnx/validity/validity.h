#pragma once
// Whether a model keeps ONNX's rules, as the package onnx and ONNX Runtime require them: operators
// and attributes that exist at the opset of the file, operands of types that they take and ranks
// that fit, names that are unique and defined before they are read, types and shapes of all inputs
// and outputs. Our own evaluator is more lenient, so every file is checked before it is written.

#include <string>
#include <vector>

#include "formats/onnx/model.h"

namespace paddle::onnx {

struct ValidityProblem {
  std::string what;     ///< "node 'conv2d' (Conv): input 0 is tensor(bfloat16), …"
  std::string source;   ///< where the model's text has the node; "" if it is not known
  std::string subject;  ///< what needs `opset`: "Conv of bfloat16"
  int64_t opset = 0;    ///< the lowest later opset at which there is no such problem; 0: none
};

/// The IR version that holds an opset.
int64_t ir_version_of(int64_t opset);

/// In the order of the nodes; empty for a valid model. Operators of other domains and local
/// functions are not looked into.
std::vector<ValidityProblem> validity_problems(const formats::onnx::Model& model);
/// The least opset at which the problems that a later opset solves are solved; 0: there are none.
int64_t needed_opset(const std::vector<ValidityProblem>& problems);
/// kModel with the first problem if there is one.
void require_valid(const formats::onnx::Model& model, const std::string& file);

}  // namespace paddle::onnx
