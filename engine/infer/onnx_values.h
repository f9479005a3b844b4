#pragma once
// Values of ONNX models as files hold them: the `.pb` tensors of the ONNX test suite in, arrays by
// name out.

#include <string>
#include <vector>

#include "formats/npz.h"
#include "onnx/session.h"

namespace paddle::infer {

onnx::Values onnx_values(const std::vector<Array>& arrays);

/// `input_0.pb`, `input_1.pb`, … of a folder, or `NAME.pb`, for each input of the model. Fails with
/// what the model takes if one is missing or of another type; optional inputs may be missing.
onnx::Values read_onnx_inputs(const onnx::Session& model, const std::string& folder);
bool has_onnx_inputs(const std::string& folder);

/// Outputs as arrays by name; the values of a sequence are NAME.0, NAME.1, …, an empty optional
/// gives none. Strings have no array.
formats::NamedArrays onnx_arrays(const onnx::Session& model, const onnx::Values& outputs);

/// NumPy has no bfloat16, 8-bit floats or integers below 8 bits: their numbers come in a type that
/// holds them.
bool needs_cast(DType given, DType wanted);
Array cast_array(const Array& array, DType to);

}  // namespace paddle::infer
