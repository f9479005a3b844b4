#pragma once
// PaddlePaddle's .pdiparams: the parameters of an inference program, one after the other. The file
// has no names; they are in the program next to it, a .pdmodel (protobuf) or .json (PIR) file.

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "tensor/tensor.h"

namespace paddle::formats {

struct PaddleParameter {
  std::string name;
  DType dtype = DType::kF32;
  Dims shape;
  size_t offset = 0;  ///< of the elements in the file
};

class PaddleParams {
 public:
  /// kModel if the file is damaged, or the program next to it has another number of parameters.
  explicit PaddleParams(const std::string& path);

  const std::string& path() const { return file_->path(); }
  /// In the order of the file, which is that of the names.
  const std::vector<PaddleParameter>& parameters() const { return parameters_; }
  /// Whether a program gave the names; otherwise they are numbers.
  bool has_names() const { return has_names_; }
  Array read(size_t index) const;

 private:
  void read_tensors();
  void take_names(std::vector<std::string> names, const std::string& program);

  std::shared_ptr<MappedFile> file_;
  std::vector<PaddleParameter> parameters_;
  bool has_names_ = false;
};

/// The files with the parameters of a program: the .pdiparams or .pdparams (a pickle) next to it,
/// or those of the folder of `__model__`, where each parameter may have one. kModel if they are not
/// there.
std::vector<std::string> paddle_parameter_files(const std::string& program);

}  // namespace paddle::formats
