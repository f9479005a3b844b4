#pragma once
// NumPy's .npy files (format versions 1 to 3): one array with its dtype and shape. Files are mapped
// rather than copied if their bytes can be used directly. bfloat16 has no NumPy type and is written
// as float32, which is exact.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::formats {

/// The parsed header; `data_offset` is where the elements start.
struct NpyHeader {
  DType dtype = DType::kF32;
  Dims shape;
  bool fortran_order = false;
  bool big_endian = false;
  size_t data_offset = 0;
  size_t string_width = 0;  ///< for kString: characters per string, zero-padded
  bool string_bytes =
      false;  ///< for kString: one byte per character (NumPy's S) instead of four (U)
  uint64_t data_bytes() const;
};

/// A string array in UTF-8.
struct NpyStrings {
  Dims shape;
  std::vector<std::string> items;
};

/// Bytes of magic, version and length field: enough of a file to find the header's length.
inline constexpr size_t kNpyPreamble = 12;
/// Offset of the elements, from the first kNpyPreamble bytes. `name` is used in errors.
size_t npy_data_offset(std::span<const std::byte> start, const std::string& name,
                       ErrorCode code = ErrorCode::kData);
/// Parses the header; `start` holds at least npy_data_offset bytes.
NpyHeader parse_npy_header(std::span<const std::byte> start, const std::string& name,
                           ErrorCode code = ErrorCode::kData);

/// An array from elements as described by the header; `elements` must hold data_bytes of them.
/// Shares `owner`'s memory if layout, byte order and alignment allow, otherwise copies.
Array npy_array(const NpyHeader& header, std::span<std::byte> elements, std::shared_ptr<void> owner,
                const std::string& name, ErrorCode code = ErrorCode::kData);

/// The strings of a kString array. Fails on invalid code points.
NpyStrings npy_strings(const NpyHeader& header, std::span<const std::byte> elements,
                       const std::string& name, ErrorCode code = ErrorCode::kData);

/// Reads one file. Its size is checked before memory is allocated.
Array read_npy(const std::string& path, ErrorCode code = ErrorCode::kData);

/// The header of an array, version 1, padded so that the elements are 64-byte aligned.
std::string npy_header(const Array& array);
/// Header and elements of a string array as NumPy's U type. Fails on invalid UTF-8.
std::string npy_file(const NpyStrings& strings, const std::string& name);
/// Whether NumPy has this dtype.
bool npy_has(DType dtype);
/// Converts to a NumPy dtype: contiguous, bfloat16 as float32; fails if there is none.
Array to_npy_type(const Array& array);
/// Writes the file atomically.
void write_npy(const std::string& path, const Array& array);

}  // namespace paddle::formats
