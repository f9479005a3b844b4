#pragma once
// Inference programs of PaddlePaddle as plain data: a .pdmodel file (the protobuf messages of
// framework.proto) or a .json file (PIR, PaddlePaddle 3). Operations keep their names and
// attributes; what they mean is defined in onnx/paddle/.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::formats {

/// The values of an attribute; a single one is a list of one. Booleans are integers.
struct PaddleAttribute {
  std::vector<int64_t> integers;
  std::vector<double> reals;
  std::vector<std::string> texts;
};

struct PaddleOperation {
  /// Names of values by slot; slots of PIR have no names, and "" stands for an absent operand.
  using Slots = std::vector<std::pair<std::string, std::vector<std::string>>>;

  std::string type;  ///< "conv2d"; operations of PIR's own dialect begin with "builtin."
  Slots inputs, outputs;
  std::map<std::string, PaddleAttribute> attributes;
};

struct PaddleVariable {
  std::optional<DType> dtype;  ///< nullopt: not a tensor, or of a type that is not known
  Dims shape;                  ///< -1 where a size is not known
  bool is_parameter = false;   ///< its value is in the .pdiparams file
};

struct PaddleProgram {
  bool is_pir = false;
  std::vector<PaddleOperation> operations;  ///< of the outermost block
  std::map<std::string, PaddleVariable> variables;

  /// Names of the parameters, sorted: the order of the .pdiparams file.
  std::vector<std::string> parameters() const;
};

/// Whether the file is the program of a model folder of PaddlePaddle 1, `FOLDER/__model__`.
bool is_paddle_folder_program(const std::string& path);
/// The program's file: in a folder `__model__`, or the only .pdmodel file or inference.json; else
/// the path itself.
std::string paddle_program_file(const std::string& path);
/// Whether a file or folder is a program: by its name, and for .json by its beginning.
bool is_paddle_program(const std::string& path);
/// Reads a .pdmodel, __model__ or .json file; kModel if it is damaged.
PaddleProgram read_paddle_program(const std::string& path);
/// The dtype for a number of framework.proto's VarType.Type; nullopt for other types.
std::optional<DType> paddle_dtype(int64_t number);

}  // namespace paddle::formats
