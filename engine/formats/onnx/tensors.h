#pragma once
// Builds arrays from tensors of ONNX files: from typed fields, from payloads in the mapped file, or
// from external files in the model's folder. Everything is checked against the declared shape
// before memory is allocated.

#include <map>
#include <string>

#include "base/files.h"
#include "formats/onnx/model.h"
#include "tensor/array_pool.h"

namespace paddle::onnx_wire {
class Tensor;
class SparseTensor;
}  // namespace paddle::onnx_wire

namespace paddle::formats::onnx {

class TensorReader {
 public:
  /// `folder` is the model's, for external data.
  TensorReader(std::shared_ptr<MappedFile> file, std::string folder, ErrorCode code);
  TensorData read(const onnx_wire::Tensor& message);
  SparseData read(const onnx_wire::SparseTensor& message);

 private:
  struct External {
    std::shared_ptr<MappedFile> file;
    uint64_t offset = 0, size = 0;
  };
  External find_external(const onnx_wire::Tensor& message, const std::string& what,
                         uint64_t needed);
  std::shared_ptr<MappedFile> open_external(const std::string& location, const std::string& what);
  template <class... Parts>
  [[noreturn, gnu::always_inline]] void bad(const Parts&... parts) const {
    fail(code_, file_->path(), ": ", parts...);
  }

  std::shared_ptr<MappedFile> file_;
  std::string folder_;
  ErrorCode code_;
  ArrayPool pool_;  ///< for payloads that must be copied
  std::map<std::string, std::shared_ptr<MappedFile>> external_;
};

}  // namespace paddle::formats::onnx
