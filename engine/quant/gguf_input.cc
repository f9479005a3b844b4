#include "quant/gguf_input.h"

#include "base/files.h"
#include "llm/gguf_form.h"
#include "text/gguf_tokenizer_writer.h"

namespace paddle::quant {
namespace {

namespace gguf = formats::gguf;

class GgufFileInput final : public GgufInput {
 public:
  explicit GgufFileInput(const std::string& path) : file_(gguf::Reader::open(path)) {
    for (const gguf::TensorInfo& tensor : file_.tensors())
      tensors_.push_back({tensor.name, tensor.type, tensor.shape});
  }
  const std::vector<gguf::RawValue>& metadata() const override { return file_.raw_metadata(); }
  uint64_t alignment() const override {
    return static_cast<uint64_t>(file_.integer("general.alignment").value_or(32));
  }
  Array read(size_t index) const override {
    return file_.read_float(file_.tensors()[index]).contiguous();
  }
  void copy(size_t index, gguf::Writer& writer) const override {
    const gguf::TensorInfo& tensor = file_.tensors()[index];
    writer.add_bytes({tensor.data, static_cast<size_t>(tensor.bytes)});
  }

 private:
  gguf::Reader file_;
};

class FolderInput final : public GgufInput {
 public:
  explicit FolderInput(const std::string& path) : form_(path), values_(form_.metadata()) {
    for (const llm::GgufForm::Tensor& tensor : form_.tensors())
      tensors_.push_back({tensor.name, gguf::type_of_dtype(tensor.dtype), tensor.shape});
    if (!tokenizers::add_gguf_tokenizer(path, form_.vocab_size(), form_.end_tokens(), values_,
                                        notes_))
      notes_.push_back(path + ": has no tokenizer, so the GGUF file has none");
    metadata_ = values_.values();
  }
  const std::vector<gguf::RawValue>& metadata() const override { return metadata_; }
  Array read(size_t index) const override {
    return form_.read(index).cast(DType::kF32).contiguous();
  }
  void copy(size_t index, gguf::Writer& writer) const override { writer.add(form_.read(index)); }

 private:
  llm::GgufForm form_;
  gguf::Metadata values_;
  std::vector<gguf::RawValue> metadata_;
};

}  // namespace

uint64_t GgufInput::bytes(size_t index) const {
  const gguf::WrittenTensor& tensor = tensors_.at(index);
  return gguf::bytes_of(tensor.type, element_count(std::span<const int64_t>(tensor.shape)));
}

std::unique_ptr<GgufInput> open_gguf_input(const std::string& path) {
  if (is_directory(path)) return std::make_unique<FolderInput>(path);
  return std::make_unique<GgufFileInput>(path);
}

}  // namespace paddle::quant
