#pragma once
// Weight files that are pickles: PyTorch's .pt and .pth, in archives and in the older form, and
// PaddlePaddle's .pdparams and .pdopt. Nothing in them is executed (pickle.h).

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/zip.h"
#include "tensor/tensor.h"

namespace paddle::formats::pickle {

/// The dict in which PaddlePaddle keeps the variable of each name of a state_dict.
inline constexpr std::string_view kVariableNames = "StructuredToParameterName@@";

struct NamedTensor {
  /// Keys of the dicts and positions in the lists around it, joined by dots.
  std::string name;
  DType dtype = DType::kF32;
  Dims shape, strides;
  int64_t offset = 0;                ///< of the first element, in elements
  std::span<const std::byte> bytes;  ///< of the storage, in the file
  bool deflated = false;             ///< `bytes` is empty; `entry` of the archive has them
  size_t entry = 0;
  bool conjugate = false;           ///< the value is the conjugate of what is stored
  bool negative = false;            ///< the value is what is stored, negated
  std::vector<NamedTensor> slices;  ///< flat arrays that make it up; it has no bytes of its own
};

class WeightFile {
 public:
  enum class Tensors : uint8_t { kRequired, kOptional };
  /// kModel if the file is damaged, holds anything that is not a tensor, number, string or a
  /// collection of these, or has no tensors where they are required.
  explicit WeightFile(const std::string& path, Tensors tensors = Tensors::kRequired);

  const std::string& path() const { return path_; }
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  /// Contents that are not tensors, a line each.
  const std::vector<std::string>& notes() const { return notes_; }
  /// Numbers and strings among the tensors, named as these are.
  const std::map<std::string, double>& numbers() const { return numbers_; }
  const std::map<std::string, std::string>& strings() const { return strings_; }
  /// A contiguous array.
  Array read(size_t index) const;

 private:
  Array read(const NamedTensor& tensor) const;
  class Collector;
  class Archive;
  class Storages;
  void open_archive();
  void open_plain();

  std::string path_;
  std::unique_ptr<ZipReader> zip_;
  std::vector<NamedTensor> tensors_;
  std::vector<std::string> notes_;
  std::map<std::string, double> numbers_;
  std::map<std::string, std::string> strings_;
  /// The memory that holds the bytes of tensors; arrays share it.
  struct Memory {
    std::shared_ptr<MappedFile> file;
    std::deque<std::vector<std::byte>> decoded;  ///< elements that the file has in another form
  };
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
};

}  // namespace paddle::formats::pickle
