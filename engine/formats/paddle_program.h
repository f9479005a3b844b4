#pragma once
// Inference programs of PaddlePaddle as plain data: a .pdmodel file (the protobuf messages of
// framework.proto) or a .json file (PIR, PaddlePaddle 3). Operations keep their names and
// attributes; what they mean is defined in paddle_program/.

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
  /// Indices of the blocks that it runs: the attribute `sub_block`, or the regions of PIR.
  std::vector<size_t> blocks;
  std::string source;  ///< the Python line that made it, "FILE:LINE"; empty if it is not known
};

struct PaddleVariable {
  std::optional<DType> dtype;  ///< nullopt: not a tensor, or of a type that is not known
  Dims shape;                  ///< -1 where a size is not known
  bool is_parameter = false;   ///< its value is in the .pdiparams file
  size_t list_size = 0;        ///< of a list of values in PIR
};

struct PaddleBlock {
  std::vector<PaddleOperation> operations;
  std::vector<std::string> arguments;  ///< in PIR the names of carried values
  std::vector<std::string> arrays;     ///< in protobuf the lists of values that it declares
};

struct PaddleProgram {
  bool is_pir = false;
  int64_t version = 0;              ///< of a program in protobuf: 3000000 for PaddlePaddle 3.0.0
  std::vector<PaddleBlock> blocks;  ///< the first is the outermost
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
/// "FILE:LINE" of the innermost line of a Python call stack outside of PaddlePaddle itself; empty
/// if it has none.
std::string python_line(const std::vector<std::string>& callstack);
/// The dtype for a number of framework.proto's VarType.Type; nullopt for other types.
std::optional<DType> paddle_dtype(int64_t number);

}  // namespace paddle::formats
