#pragma once
// The source of a GGUF file that is written: another GGUF file, or a Hugging Face folder in its
// form.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/gguf/reader.h"
#include "formats/gguf/writer.h"
#include "tensor/tensor.h"

namespace paddle::quant {

class GgufInput {
 public:
  virtual ~GgufInput() = default;
  const std::vector<formats::gguf::WrittenTensor>& tensors() const { return tensors_; }
  /// Bytes of a tensor as it is.
  uint64_t bytes(size_t index) const;
  virtual const std::vector<formats::gguf::RawValue>& metadata() const = 0;
  virtual uint64_t alignment() const { return 32; }
  /// As float32.
  virtual Array read(size_t index) const = 0;
  /// Writes a tensor as it is.
  virtual void copy(size_t index, formats::gguf::Writer& writer) const = 0;
  /// Parts of the source that the output lacks, a line each.
  const std::vector<std::string>& notes() const { return notes_; }

 protected:
  std::vector<formats::gguf::WrittenTensor> tensors_;
  std::vector<std::string> notes_;
};

/// kModel for damaged files, and for a folder that cannot be a GGUF file.
std::unique_ptr<GgufInput> open_gguf_input(const std::string& path);

}  // namespace paddle::quant
