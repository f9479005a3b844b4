#pragma once
// Writes GGUF files (version 3) tensor by tensor, atomically: the file appears at `close`.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "formats/gguf/quantize.h"
#include "formats/gguf/reader.h"
#include "tensor/tensor.h"

namespace paddle::formats::gguf {

struct WrittenTensor {
  std::string name;
  int64_t type = 0;  ///< ggml's number: 0 F32, 1 F16, 30 BF16, or one of quantize.h
  Dims shape;        ///< row-major
};

class Writer {
 public:
  /// Declares all tensors, in the order in which they are added, and texts for the metadata. kUsage
  /// for what the format or ggml does not hold: more than 4 axes, names over 63 bytes, rows that
  /// do not fill whole blocks.
  Writer(const std::string& path, std::vector<WrittenTensor> tensors,
         const std::map<std::string, std::string>& metadata = {});
  /// The same with metadata of another file, whose `general.alignment` decides.
  Writer(const std::string& path, std::vector<WrittenTensor> tensors,
         const std::vector<RawValue>& metadata, uint64_t alignment);
  /// The bytes of the next tensor as the file holds them.
  void add_bytes(std::span<const uint8_t> bytes);
  /// The values of the next tensor: float32, float16 or bfloat16 as its type says; float32 for a
  /// type of blocks, whose scales are chosen as `scales` says.
  void add(const Array& values, BlockScales scales = BlockScales::kPlain);
  void close();

 private:
  void write_header(const std::vector<RawValue>& metadata);
  void pad(uint64_t bytes);

  std::vector<WrittenTensor> tensors_;
  uint64_t alignment_ = 32;
  AtomicFile file_;
  size_t next_ = 0;
};

/// The ggml type of a dtype: F32, F16 and BF16; -1 for others.
int64_t type_of_dtype(DType dtype);
/// Bytes of a tensor of these values.
uint64_t bytes_of(int64_t type, int64_t values);

}  // namespace paddle::formats::gguf
