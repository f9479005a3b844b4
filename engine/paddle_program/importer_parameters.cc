// The parameters of a program: initializers with the values of the files next to it.

#include <map>
#include <string_view>

#include "formats/pickle/weights.h"
#include "paddle_program/importer.h"

namespace paddle::paddle_program {

using formats::PaddleVariable;
using formats::onnx::TensorData;

void ProgramImporter::add_parameter(const std::string& name, const std::string& file,
                                    Array stored) {
  PaddleVariable& declared = program_.variables.at(name);
  // Weights of quantized programs are int8 in the file and declared as floats, their scales are 0-D
  // and declared as [1]: as in PaddlePaddle the file counts.
  const bool is_quantized = declared.dtype && is_float(*declared.dtype) && is_integer(stored.dtype);
  if ((declared.dtype != stored.dtype && !is_quantized) ||
      element_count(std::span<const int64_t>(declared.shape)) !=
          element_count(std::span<const int64_t>(stored.shape)))
    fail(ErrorCode::kModel, file, ": '", name, "' is ", paddle::text(stored.dtype),
         str(stored.shape), ", ", path_, " needs ",
         declared.dtype ? paddle::text(*declared.dtype) : "another type", str(declared.shape));
  declared.shape = stored.shape;
  declared.dtype = stored.dtype;
  TensorData tensor;
  tensor.name = fresh(name);
  tensor.dtype = stored.dtype;
  tensor.shape = stored.shape;
  tensor.array = std::move(stored);
  assign(name, tensor.name);
  model_.graph.initializers.push_back(std::move(tensor));
}

void ProgramImporter::add_parameters() {
  const std::vector<std::string> wanted = program_.parameters();
  // Those without a value in the file count as absent: recurrent layers have such a state.
  if (program_.is_pir)
    for (const auto& [name, declared] : program_.variables)
      if (!name.starts_with('%') && !declared.is_parameter && !scope_->find(name)) assign(name, "");
  if (wanted.empty()) return;
  size_t next = 0;
  const std::vector<std::string> paths = formats::paddle_parameter_files(path_);
  if (paths[0].ends_with(".pdparams")) return add_named_parameters(wanted, paths[0]);
  for (const std::string& path : paths) {
    const formats::PaddleParams file(path);
    const size_t expected = paths.size() == 1 ? wanted.size() : 1;
    if (file.parameters().size() != expected || next + expected > wanted.size())
      fail(ErrorCode::kModel, path, ": has ", file.parameters().size(), " parameters, ", path_,
           " needs ", expected);
    for (size_t i = 0; i < expected; ++i) add_parameter(wanted[next++], path, file.read(i));
  }
}

void ProgramImporter::add_named_parameters(const Names& wanted, const std::string& path) {
  const formats::pickle::WeightFile file(path);
  std::map<std::string_view, size_t> stored;
  for (size_t i = 0; i < file.tensors().size(); ++i) stored.emplace(file.tensors()[i].name, i);
  for (const std::string& name : wanted) {
    const auto found = stored.find(name);
    if (found == stored.end())
      fail(ErrorCode::kModel, path, ": has no parameter '", name, "', which ", path_, " needs");
    add_parameter(name, path, file.read(found->second));
  }
}

}  // namespace paddle::paddle_program
