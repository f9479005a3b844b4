#include "formats/idx.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "base/files.h"

namespace paddle::formats {
namespace {

constexpr uint64_t kMaxRatio = 1032;  // maximum of deflate

DType type_of(uint8_t code, const std::string& path) {
  switch (code) {
    case 0x08:
      return DType::kU8;
    case 0x09:
      return DType::kI8;
    case 0x0b:
      return DType::kI16;
    case 0x0c:
      return DType::kI32;
    case 0x0d:
      return DType::kF32;
    case 0x0e:
      return DType::kF64;
    default:
      fail(ErrorCode::kData, path, ": not an IDX file: element type ", int{code});
  }
}

/// A stream over a mapped file, inflated if it is gzip.
class Source {
 public:
  explicit Source(const std::string& path) : file_(MappedFile::open(path)) {
    const auto view = file_->view();
    gzip_ = view.size() >= 2 && view[0] == '\x1f' && view[1] == '\x8b';
    if (gzip_ && inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK)
      fail(ErrorCode::kDevice, "out of memory in zlib");
  }
  ~Source() {
    if (gzip_) inflateEnd(&stream_);
  }
  Source(const Source&) = delete;

  bool gzip() const { return gzip_; }
  const std::shared_ptr<MappedFile>& file() const { return file_; }
  /// False until the gzip trailer with the checksum has been read.
  bool at_end() const { return gzip_ ? ended_ : at_ == file_->size(); }
  /// Upper bound of the decompressed size.
  uint64_t bound() const {
    return gzip_ ? (file_->size() + 1) * kMaxRatio : static_cast<uint64_t>(file_->size());
  }
  /// Reads up to `count` bytes; returns how many.
  size_t read(std::byte* out, size_t count) {
    if (!gzip_) {
      const size_t got = std::min(count, file_->size() - at_);
      if (got > 0) std::memcpy(out, file_->data() + at_, got);
      at_ += got;
      return got;
    }
    size_t done = 0;
    while (done < count && !ended_) {
      if (stream_.avail_in == 0) {
        const size_t part = std::min(file_->size() - at_, size_t{1} << 30);
        stream_.next_in = reinterpret_cast<Bytef*>(file_->data() + at_);
        stream_.avail_in = static_cast<uInt>(part);
        at_ += part;
      }
      const uInt room = static_cast<uInt>(std::min(count - done, size_t{1} << 30));
      stream_.next_out = reinterpret_cast<Bytef*>(out + done);
      stream_.avail_out = room;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      done += room - stream_.avail_out;
      if (result == Z_STREAM_END)
        ended_ = true;
      else if (result == Z_BUF_ERROR)
        return done;  // truncated file
      else if (result != Z_OK)
        fail(ErrorCode::kData, file_->path(), ": bad gzip data");
    }
    return done;
  }

 private:
  std::shared_ptr<MappedFile> file_;
  bool gzip_ = false, ended_ = false;
  size_t at_ = 0;
  z_stream stream_{};
};

}  // namespace

Array read_idx(const std::string& path) {
  Source source(path);
  std::byte head[4];
  if (source.read(head, 4) < 4 || head[0] != std::byte{0} || head[1] != std::byte{0})
    fail(ErrorCode::kData, path, ": not an IDX file");
  const DType dtype = type_of(static_cast<uint8_t>(head[2]), path);
  const size_t rank = static_cast<size_t>(head[3]);
  uint64_t bytes = static_cast<uint64_t>(item_size(dtype));
  Dims shape;
  for (size_t axis = 0; axis < rank; ++axis) {
    uint8_t size[4];
    if (source.read(reinterpret_cast<std::byte*>(size), 4) < 4)
      fail(ErrorCode::kData, path, ": cut short in its header");
    const uint32_t d =
        uint32_t{size[0]} << 24 | uint32_t{size[1]} << 16 | uint32_t{size[2]} << 8 | size[3];
    shape.push_back(d);
    if (__builtin_mul_overflow(bytes, uint64_t{d}, &bytes)) bytes = ~uint64_t{0};
    if (bytes > source.bound())
      fail(ErrorCode::kData, path, ": cut short: it declares ", str(shape), " of ", text(dtype),
           " or more, the file has ", source.file()->size(), " bytes");
  }
  const size_t header = 4 + 4 * rank;
  if (!source.gzip() && item_size(dtype) == 1 && bytes > 0) {
    if (source.file()->size() != header + bytes)
      fail(ErrorCode::kData, path, ": ",
           source.file()->size() < header + bytes ? "cut short: " : "", "shape ", str(shape),
           " needs ", header + bytes, " bytes, the file has ", source.file()->size());
    Array array;
    array.dtype = dtype;
    array.strides = contiguous_strides(shape);
    array.shape = std::move(shape);
    array.storage = Storage::borrow(source.file()->data() + header, bytes, source.file());
    return array;
  }
  Array array = Array::empty(dtype, std::move(shape));
  auto* out = static_cast<std::byte*>(array.raw());
  const size_t got = source.read(out, bytes);
  if (got < bytes)
    fail(ErrorCode::kData, path, ": cut short: shape ", str(array.shape), " needs ", bytes,
         " bytes, ", got, " are there");
  std::byte extra;
  if (source.read(&extra, 1) > 0)
    fail(ErrorCode::kData, path, ": more data than its shape ", str(array.shape), " declares");
  if (!source.at_end()) fail(ErrorCode::kData, path, ": gzip data is cut short");
  const size_t width = static_cast<size_t>(item_size(dtype));
  for (size_t at = 0; width > 1 && at < bytes; at += width)
    std::reverse(out + at, out + at + width);
  return array;
}

}  // namespace paddle::formats
