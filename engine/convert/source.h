#pragma once
// Where tensors come from: names, types and shapes of all of them, and their values one at a time.
// Values lie in mapped files where the format allows, so that a model need not fit into memory.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/format.h"
#include "convert/packed_weights.h"
#include "formats/gguf/quantize.h"
#include "tensor/tensor.h"

namespace paddle::convert {

struct StoredTensor {
  std::string name;
  DType dtype = DType::kF32;
  Dims shape;
  /// Written as blocks of this type of a GGUF file (formats/gguf/quantize.h); null: as `dtype`.
  const formats::gguf::BlockType* blocks = nullptr;
  uint64_t bytes() const;
};

class Source {
 public:
  virtual ~Source() = default;
  /// In the order of the file.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Contents that are not numbers and are left out, a line each.
  const std::vector<std::string>& notes() const { return notes_; }
  /// kModel where the file is damaged.
  virtual Array read(size_t index) const = 0;
  /// The rows of a matrix in blocks as the file has them, in the format of operations with packed
  /// weights; nothing for other tensors.
  virtual std::optional<PackedWeight> read_blocks(size_t) const { return std::nullopt; }

 protected:
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
  std::vector<std::string> notes_;
};

/// Opens a file or folder. kUsage if it is not there, kModel if it is not what the format says.
std::unique_ptr<Source> open_source(const std::string& path, Format format);
/// The tensors of a GGUF file that is open.
std::unique_ptr<Source> gguf_source(std::shared_ptr<const formats::gguf::Reader> reader);

/// The files that an index of shards names, in their order. kModel.
std::vector<std::string> shard_files(const std::string& index);

}  // namespace paddle::convert
