#pragma once
// HDF5 files, such as the weights of Keras: datasets of numbers by their paths. The HDF5 library is
// an optional module that is opened on first use.

#include <memory>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::formats {

struct Hdf5Dataset {
  std::string name;  ///< "model_weights/dense/kernel:0"
  DType dtype = DType::kF32;
  Dims shape;
};

class Hdf5Reader {
 public:
  /// A HDF5 file, or one that Keras saved (.keras), an archive with `model.weights.h5`. kModel if
  /// it is damaged or its datasets are in other files; kDevice if this installation cannot read
  /// HDF5.
  explicit Hdf5Reader(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<Hdf5Dataset>& datasets() const { return datasets_; }
  /// Names of datasets that are not numbers of a known type.
  const std::vector<std::string>& others() const { return others_; }
  /// Names of soft and external links, which are not followed.
  const std::vector<std::string>& links() const { return links_; }
  Array read(size_t index) const;

 private:
  std::string path_;
  std::shared_ptr<void> file_;
  std::vector<Hdf5Dataset> datasets_;
  std::vector<std::string> others_, links_;
  uint64_t largest_ = 0;  ///< bytes that a dataset of this file can have
};

}  // namespace paddle::formats
