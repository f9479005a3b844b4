#include "formats/gguf/writer.h"

#include <algorithm>

#include "base/error.h"
#include "formats/gguf/blocks.h"
#include "formats/gguf/metadata.h"
#include "formats/gguf/quantize.h"

namespace paddle::formats::gguf {
namespace {

constexpr size_t kMaxName = 63, kMaxAxes = 4;  // ggml's GGML_MAX_NAME and GGML_MAX_DIMS

template <class T>
void put(AtomicFile& file, T value) {
  file.write(&value, sizeof value);
}

void put_text(AtomicFile& file, std::string_view text) {
  put<uint64_t>(file, text.size());
  file.write(text);
}

int64_t values_of(const WrittenTensor& tensor) {
  return element_count(std::span<const int64_t>(tensor.shape));
}

void check(const WrittenTensor& tensor) {
  const auto reject = [&](const auto&... why) {
    fail(ErrorCode::kUsage, "'", tensor.name, "': ", why...);
  };
  if (tensor.name.size() > kMaxName)
    reject("GGUF files have names of up to ", kMaxName, " bytes, this one has ",
           tensor.name.size());
  if (tensor.shape.size() > kMaxAxes)
    reject("GGUF files have up to ", kMaxAxes, " axes, this tensor has ", tensor.shape.size());
  const BlockFormat* format = find_block_format(tensor.type);
  ensure(format != nullptr, "the ggml type ", tensor.type, " is not written");
  const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % format->values != 0)
    reject("rows of ", row, " values do not fill whole blocks of ", format->values);
}

}  // namespace

int64_t type_of_dtype(DType dtype) {
  return dtype == DType::kF32 ? 0 : dtype == DType::kF16 ? 1 : dtype == DType::kBF16 ? 30 : -1;
}

uint64_t bytes_of(int64_t type, int64_t values) {
  const BlockFormat* format = find_block_format(type);
  ensure(format != nullptr, "the ggml type ", type, " is not written");
  return static_cast<uint64_t>(values / format->values * format->bytes);
}

Writer::Writer(const std::string& path, std::vector<WrittenTensor> tensors,
               const std::map<std::string, std::string>& metadata)
    : tensors_(std::move(tensors)), file_(path) {
  Metadata texts;
  for (const auto& [key, value] : metadata) texts.add_text(key, value);
  write_header(texts.values());
}

Writer::Writer(const std::string& path, std::vector<WrittenTensor> tensors,
               const std::vector<RawValue>& metadata, uint64_t alignment)
    : tensors_(std::move(tensors)), alignment_(alignment), file_(path) {
  write_header(metadata);
}

void Writer::write_header(const std::vector<RawValue>& metadata) {
  bool blocks = false;
  for (const WrittenTensor& tensor : tensors_) {
    check(tensor);
    blocks = blocks || find_block_type(tensor.type);
  }
  const std::string version = "general.quantization_version";
  Metadata stated;
  stated.add_integer(version, 2);
  const bool states_version =
      blocks && std::none_of(metadata.begin(), metadata.end(),
                             [&](const RawValue& each) { return each.key == version; });
  file_.write("GGUF");
  put<uint32_t>(file_, 3);
  put<uint64_t>(file_, tensors_.size());
  put<uint64_t>(file_, metadata.size() + (states_version ? 1 : 0));
  for (const RawValue& each : metadata) {
    put_text(file_, each.key);
    file_.write(each.bytes);
  }
  if (states_version) {
    put_text(file_, version);
    file_.write(stated.values()[0].bytes);
  }
  uint64_t offset = 0;
  for (const WrittenTensor& tensor : tensors_) {
    put_text(file_, tensor.name);
    const Dims shape = tensor.shape.empty() ? Dims{1} : tensor.shape;
    put<uint32_t>(file_, static_cast<uint32_t>(shape.size()));
    for (size_t i = shape.size(); i-- > 0;) put<uint64_t>(file_, static_cast<uint64_t>(shape[i]));
    put<uint32_t>(file_, static_cast<uint32_t>(tensor.type));
    put<uint64_t>(file_, offset);
    const uint64_t bytes = bytes_of(tensor.type, values_of(tensor));
    offset += (bytes + alignment_ - 1) / alignment_ * alignment_;
  }
  pad(file_.written());
}

void Writer::pad(uint64_t bytes) {
  const uint64_t rest = bytes % alignment_;
  if (rest > 0) file_.write(std::string(static_cast<size_t>(alignment_ - rest), '\0'));
}

void Writer::add_bytes(std::span<const uint8_t> bytes) {
  const WrittenTensor& tensor = tensors_.at(next_++);
  ensure(bytes.size() == bytes_of(tensor.type, values_of(tensor)), "GGUF: '", tensor.name,
         "' has other bytes");
  file_.write(bytes.data(), bytes.size());
  pad(bytes.size());
}

void Writer::add(const Array& given, BlockScales scales) {
  const WrittenTensor& tensor = tensors_.at(next_++);
  const Array values = given.contiguous();
  ensure(values.shape == tensor.shape, "GGUF: '", tensor.name, "' has another shape");
  const uint64_t bytes = bytes_of(tensor.type, values_of(tensor));
  if (const BlockType* type = find_block_type(tensor.type)) {
    ensure(values.dtype == DType::kF32, "GGUF: values to quantize are not float32");
    const auto blocks = quantize(
        *type, std::span<const float>(values.data<float>(), static_cast<size_t>(values.size())),
        scales);
    file_.write(blocks.data(), blocks.size());
  } else {
    ensure(type_of_dtype(values.dtype) == tensor.type, "GGUF: '", tensor.name, "' is ",
           text(values.dtype));
    if (bytes > 0) file_.write(values.raw(), static_cast<size_t>(bytes));
  }
  pad(bytes);
}

void Writer::close() {
  ensure(next_ == tensors_.size(), "GGUF: ", tensors_.size() - next_, " tensors are missing");
  file_.commit();
}

}  // namespace paddle::formats::gguf
