#include "formats/parquet/codecs.h"

#include <dlfcn.h>
#include <zlib.h>

#include <cstring>

#include "base/error.h"

namespace paddle::formats::parquet {
namespace {

/// Snappy's raw format (format_description.txt of google/snappy): literals and copies.
class Snappy {
 public:
  Snappy(std::string_view in, uint64_t size, const std::string& place) : in_(in), place_(place) {
    uint64_t declared = 0;
    for (int shift = 0;; shift += 7) {
      const uint8_t b = byte();
      declared |= uint64_t{b & 127u} << shift;
      if (b < 128) break;
      if (shift > 28) damaged();
    }
    if (declared != size) damaged();
    out_.reserve(size);
    while (at_ < in_.size()) element(size);
    if (out_.size() != size) damaged();
  }
  std::string take() { return std::move(out_); }

 private:
  [[noreturn]] void damaged() const {
    fail(ErrorCode::kData, place_, ": damaged Snappy data at byte ", at_);
  }
  uint8_t byte() {
    if (at_ >= in_.size()) damaged();
    return static_cast<uint8_t>(in_[at_++]);
  }
  uint64_t little_endian(int bytes) {
    uint64_t out = 0;
    for (int i = 0; i < bytes; ++i) out |= uint64_t{byte()} << (8 * i);
    return out;
  }
  void element(uint64_t size) {
    const uint8_t tag = byte();
    if ((tag & 3) == 0) {
      uint64_t length = tag >> 2;
      if (length >= 60) length = little_endian(static_cast<int>(length) - 59);
      ++length;
      if (length > in_.size() - at_ || length > size - out_.size()) damaged();
      out_.append(in_.substr(at_, length));
      at_ += length;
      return;
    }
    uint64_t length = 0, offset = 0;
    if ((tag & 3) == 1) {
      length = 4 + ((tag >> 2) & 7);
      offset = uint64_t{tag & 0xE0u} << 3 | byte();
    } else {
      length = 1 + (tag >> 2);
      offset = little_endian((tag & 3) == 2 ? 2 : 4);
    }
    if (offset == 0 || offset > out_.size() || length > size - out_.size()) damaged();
    // Byte by byte: a copy may read what it has just written.
    for (uint64_t i = 0; i < length; ++i) out_ += out_[out_.size() - offset];
  }

  std::string_view in_;
  const std::string& place_;
  std::string out_;
  size_t at_ = 0;
};

std::string gunzip(std::string_view packed, uint64_t size, const std::string& place) {
  z_stream stream{};
  constexpr int kAnyHeader = 32;  // gzip or zlib
  if (inflateInit2(&stream, MAX_WBITS + kAnyHeader) != Z_OK)
    fail(ErrorCode::kDevice, place, ": cannot start zlib");
  std::string out(size, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(size);
  const int status = inflate(&stream, Z_FINISH);
  const bool is_good = status == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  if (!is_good) fail(ErrorCode::kData, place, ": damaged gzip data");
  return out;
}

/// The two functions of libzstd that are needed.
struct Zstd {
  size_t (*decompress)(void*, size_t, const void*, size_t) = nullptr;
  unsigned (*is_error)(size_t) = nullptr;
  Zstd() {
    void* const library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    decompress = reinterpret_cast<decltype(decompress)>(dlsym(library, "ZSTD_decompress"));
    is_error = reinterpret_cast<decltype(is_error)>(dlsym(library, "ZSTD_isError"));
  }
};

std::string unzstd(std::string_view packed, uint64_t size, const std::string& place) {
  static const Zstd library;
  if (!library.decompress || !library.is_error)
    fail(ErrorCode::kDevice, place, ": is compressed with Zstandard, whose library libzstd.so.1 ",
         "(Debian: libzstd1) is not installed");
  std::string out(size, '\0');
  const size_t made = library.decompress(out.data(), out.size(), packed.data(), packed.size());
  if (library.is_error(made) || made != size)
    fail(ErrorCode::kData, place, ": damaged Zstandard data");
  return out;
}

}  // namespace

std::string decompress(Codec codec, std::string_view packed, uint64_t size,
                       const std::string& place) {
  switch (codec) {
    case Codec::kNone:
      if (packed.size() != size) fail(ErrorCode::kData, place, ": the size of a page is wrong");
      return std::string(packed);
    case Codec::kSnappy:
      return Snappy(packed, size, place).take();
    case Codec::kGzip:
      return gunzip(packed, size, place);
    case Codec::kZstd:
      return unzstd(packed, size, place);
  }
  fail(ErrorCode::kData, place, ": compression ", static_cast<int>(codec),
       " is not supported; write the file with snappy, gzip, zstd or none");
}

}  // namespace paddle::formats::parquet
