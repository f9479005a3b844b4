#pragma once
// NumPy's .npy files (format versions 1 to 3): one array with its dtype and shape. Files are
// mapped, not copied, where their bytes can be used as they are. bfloat16 has no NumPy type and is
// written as float32, which holds it exactly.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::formats {

/// What the header says; `data_offset` is where the elements start.
struct NpyHeader {
  DType dtype = DType::kF32;
  Dims shape;
  bool fortran_order = false;
  bool big_endian = false;
  size_t data_offset = 0;
  size_t string_width = 0;    ///< of kString: characters of each string, filled up with zeros
  bool string_bytes = false;  ///< of kString: characters of one byte (NumPy's S), not of four (U)
  uint64_t data_bytes() const;
};

/// Strings of an array, in UTF-8.
struct NpyStrings {
  Dims shape;
  std::vector<std::string> items;
};

/// Bytes of magic, version and length field; the first kNpyPreamble bytes of a file tell how long
/// its header is.
inline constexpr size_t kNpyPreamble = 12;
/// Bytes from the file's start to its elements, from the first kNpyPreamble bytes. `name` stands in
/// errors.
size_t npy_data_offset(std::span<const std::byte> start, const std::string& name,
                       ErrorCode code = ErrorCode::kData);
/// Parses the header; `start` holds at least npy_data_offset bytes.
NpyHeader parse_npy_header(std::span<const std::byte> start, const std::string& name,
                           ErrorCode code = ErrorCode::kData);

/// An array from elements as the header describes them; `elements` must hold data_bytes of them.
/// The array shares `owner`'s memory where order, byte order and alignment allow, else copies.
Array npy_array(const NpyHeader& header, std::span<std::byte> elements, std::shared_ptr<void> owner,
                const std::string& name, ErrorCode code = ErrorCode::kData);

/// The strings of a kString header. Code points that are none fail.
NpyStrings npy_strings(const NpyHeader& header, std::span<const std::byte> elements,
                       const std::string& name, ErrorCode code = ErrorCode::kData);

/// Reads one file. Its size is checked before any memory is taken.
Array read_npy(const std::string& path, ErrorCode code = ErrorCode::kData);

/// The header of an array, version 1, padded so that the elements are 64-byte aligned.
std::string npy_header(const Array& array);
/// Header and elements of strings as NumPy's U type. Fails for what is no UTF-8.
std::string npy_file(const NpyStrings& strings, const std::string& name);
/// Whether NumPy has this type.
bool npy_has(DType dtype);
/// The array as NumPy can hold it: contiguous, bfloat16 widened; fails for types it cannot.
Array to_npy_type(const Array& array);
/// Writes the file atomically.
void write_npy(const std::string& path, const Array& array);

}  // namespace paddle::formats
