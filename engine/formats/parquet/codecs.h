#pragma once
// Decompression of the pages of Parquet files: Snappy, gzip and Zstandard.

#include <cstdint>
#include <string>
#include <string_view>

namespace paddle::formats::parquet {

/// The numbers by which Parquet names codecs.
enum class Codec { kNone = 0, kSnappy = 1, kGzip = 2, kZstd = 6 };

/// Exactly `size` bytes of content. kData, with `place`, for damaged input and other codecs;
/// kDevice if Zstandard's library (libzstd.so.1) is not installed.
std::string decompress(Codec codec, std::string_view packed, uint64_t size,
                       const std::string& place);

}  // namespace paddle::formats::parquet
