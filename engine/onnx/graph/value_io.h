#pragma once
// Values of ONNX models as files hold them: arrays by name in NPZ files, or the `.pb` tensors of
// the ONNX test suite, in; arrays and strings by name out.

#include <string>
#include <variant>
#include <vector>

#include "formats/npz.h"
#include "onnx/graph/session.h"

namespace paddle::onnx {

Values to_values(const std::vector<Array>& arrays);

/// The model's inputs from an NPZ file, by name: the values of a sequence are NAME.0, NAME.1, …, a
/// map is NAME with NAME.keys. Or from a folder: `input_0.pb`, `input_1.pb`, … or `NAME.pb`. Fails
/// with what the model takes if one is missing; optional inputs may be missing.
Values read_inputs(const Session& model, const std::string& path);
/// Whether the path is such a folder.
bool has_input_files(const std::string& folder);
/// Whether an input or output may be something else than an array of numbers.
bool needs_values(const Session& model);

struct NamedOutput {
  std::string name;
  std::variant<Array, formats::NpyStrings> content;
};
/// Outputs by name; the values of a sequence are NAME.0, NAME.1, …, an empty optional gives none.
/// Maps from the same keys, one after another, are NAME, a row for each, with NAME.keys.
std::vector<NamedOutput> named_outputs(const Session& model, const Values& outputs);
void write_outputs(const std::string& path, const std::vector<NamedOutput>& outputs);
/// The same where all are arrays; kData for strings.
formats::NamedArrays plain_arrays(const Session& model, const Values& outputs);

/// NumPy has no bfloat16, 8-bit floats or integers below 8 bits: their numbers come in a type that
/// holds them.
bool needs_cast(DType given, DType wanted);
/// Casts an array that `needs_cast`; kData, with `what`, where an integer is out of range.
Array cast_provided(const Array& a, DType wanted, const std::string& what);

}  // namespace paddle::onnx
