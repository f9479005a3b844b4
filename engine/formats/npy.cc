#include "formats/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/files.h"
#include "base/limits.h"
#include "base/utf8.h"

namespace paddle::formats {
namespace {

constexpr size_t kMaxHeader = size_t{1} << 20;
constexpr size_t kMaxRank = 64;

struct NpyType {
  std::string_view code;
  DType dtype;
};
constexpr NpyType kTypes[] = {{"b1", DType::kBool}, {"i1", DType::kI8},   {"i2", DType::kI16},
                              {"i4", DType::kI32},  {"i8", DType::kI64},  {"u1", DType::kU8},
                              {"u2", DType::kU16},  {"u4", DType::kU32},  {"u8", DType::kU64},
                              {"f2", DType::kF16},  {"f4", DType::kF32},  {"f8", DType::kF64},
                              {"c8", DType::kC64},  {"c16", DType::kC128}};

/// Reader of the Python literal that a header is: {'descr': '<f4', 'fortran_order': False, …}.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name, ErrorCode code)
      : rest_(text), name_(name), code_(code) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !has_type) {
        type(header);
        has_type = true;
      } else if (key == "fortran_order" && !has_order) {
        header.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        header.shape = shape();
        has_shape = true;
      } else {
        bad(str("unexpected key '", key, "'"));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (!rest_.empty()) bad("text after the dictionary");
    if (!has_type || !has_order || !has_shape)
      bad("'descr', 'fortran_order' or 'shape' is missing");
    return header;
  }

 private:
  [[noreturn]] void bad(const std::string& why) { fail(code_, name_, ": bad NPY header: ", why); }
  void skip() {
    while (!rest_.empty() && std::string_view(" \t\r\n\f").find(rest_.front()) != rest_.npos)
      rest_.remove_prefix(1);
  }
  bool accept(char c) {
    skip();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) bad(str("expected '", c, "'"));
  }
  std::string quoted() {
    skip();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"'))
      bad("expected a quoted name");
    const size_t end = rest_.find(rest_.front(), 1);
    if (end == rest_.npos) bad("a quote is not closed");
    std::string out(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return out;
  }
  bool boolean() {
    skip();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    }
    bad("expected True or False");
  }
  Dims shape() {
    Dims out;
    expect('(');
    while (!accept(')')) {
      skip();
      int64_t value = -1;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      if (error != std::errc{} || value < 0) bad("expected a size in 'shape'");
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      if (!rest_.empty() && rest_.front() == 'L') rest_.remove_prefix(1);  // Python 2 wrote 3L
      out.push_back(value);
      if (out.size() > kMaxRank) bad("more than 64 axes");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return out;
  }
  void type(NpyHeader& header) {
    skip();
    if (!rest_.empty() && rest_.front() == '[')
      fail(code_, name_,
           ": structured arrays are not supported; store each field as its own array");
    const std::string descr = quoted();
    if (descr.size() < 2) bad("bad 'descr'");
    header.big_endian = descr[0] == '>';
    if (descr[1] == 'U' || descr[1] == 'S') {
      const char* const end = descr.data() + descr.size();
      const auto [stop, error] = std::from_chars(descr.data() + 2, end, header.string_width);
      if (error != std::errc{} || stop != end || header.string_width > size_t{1} << 30)
        bad("bad 'descr'");
      header.dtype = DType::kString;
      header.string_bytes = descr[1] == 'S';
      return;
    }
    if (descr[1] == 'O')
      fail(code_, name_,
           ": Python objects are not supported; convert them to numbers or strings "
           "(array.astype(str))");
    for (const NpyType& each : kTypes)
      if (std::string_view(descr).substr(1) == each.code &&
          std::string_view("<>|=").find(descr[0]) != std::string_view::npos) {
        header.dtype = each.dtype;
        return;
      }
    fail(code_, name_, ": NumPy type '", descr,
         "' is not supported; convert it to a bool, integer, float or complex type");
  }

  std::string_view rest_;
  const std::string& name_;
  ErrorCode code_;
};

/// Bytes per element.
uint64_t element_bytes(const NpyHeader& header) {
  if (header.dtype != DType::kString) return static_cast<uint64_t>(item_size(header.dtype));
  return header.string_width * (header.string_bytes ? 1 : 4);
}

/// Total bytes of the elements; nullopt if strides or bytes exceed 62 bits.
std::optional<uint64_t> bytes_of(const NpyHeader& header) {
  uint64_t extent = std::max<uint64_t>(element_bytes(header), 1), count = element_bytes(header);
  for (const int64_t d : header.shape) {
    if (__builtin_mul_overflow(extent, static_cast<uint64_t>(std::max<int64_t>(d, 1)), &extent) ||
        extent >> 62)
      return std::nullopt;
    count *= static_cast<uint64_t>(d);
  }
  return count;
}

/// The byte size declared by the header, checked against the bytes present.
uint64_t checked_bytes(const NpyHeader& header, size_t found, const std::string& name,
                       ErrorCode code) {
  const uint64_t needed = header.data_bytes();
  if (found < needed)
    fail(code, name, ": cut short: shape ", str(header.shape), " of ", text(header.dtype),
         " needs ", needed, " bytes, found ", found);
  return needed;
}

/// Code points of UTF-8; nullopt if it is invalid.
std::optional<std::vector<uint32_t>> code_points(const std::string& text) {
  std::vector<uint32_t> out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character c = utf8_character(text, at);
    if (c.length == 0) return std::nullopt;
    out.push_back(c.code);
    at += c.length;
  }
  return out;
}

/// A header of version 1, padded so that the elements are 64-byte aligned.
std::string header_text(const std::string& type, const Dims& sizes) {
  std::string shape;
  for (const int64_t d : sizes) shape += str(d, sizes.size() == 1 ? "," : ", ");
  if (sizes.size() > 1) shape.resize(shape.size() - 2);
  std::string text =
      str("{'descr': '", type, "', 'fortran_order': False, 'shape': (", shape, "), }");
  const size_t padded = (10 + text.size() + 1 + 63) / 64 * 64;
  text.append(padded - 10 - text.size() - 1, ' ');
  text += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(text.size() & 0xff);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

/// Swaps the bytes of each scalar (a complex number is two).
void swap_bytes(Array& array) {
  const int64_t scalars = is_complex(array.dtype) ? 2 : 1;
  const size_t width = static_cast<size_t>(item_size(array.dtype) / scalars);
  auto* bytes = static_cast<std::byte*>(array.raw());
  const size_t total = static_cast<size_t>(array.size() * item_size(array.dtype));
  for (size_t at = 0; at < total; at += width) std::reverse(bytes + at, bytes + at + width);
}

}  // namespace

uint64_t NpyHeader::data_bytes() const { return *bytes_of(*this); }

size_t npy_data_offset(std::span<const std::byte> start, const std::string& name, ErrorCode code) {
  if (start.size() < kNpyPreamble || std::memcmp(start.data(), "\x93NUMPY", 6) != 0)
    fail(code, name, ": not an NPY file");
  const auto byte = [&](size_t at) { return static_cast<size_t>(start[at]); };
  const size_t version = byte(6);
  if (version < 1 || version > 3) fail(code, name, ": NPY version ", version, " is not supported");
  const size_t length = version == 1 ? byte(8) | byte(9) << 8
                                     : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > kMaxHeader) fail(code, name, ": NPY header of ", length, " bytes");
  return (version == 1 ? 10 : 12) + length;
}

NpyHeader parse_npy_header(std::span<const std::byte> start, const std::string& name,
                           ErrorCode code) {
  const size_t offset = npy_data_offset(start, name, code);
  if (start.size() < offset) fail(code, name, ": NPY file is cut short in its header");
  const size_t from = static_cast<size_t>(start[6]) == 1 ? 10 : 12;
  const std::string_view text(reinterpret_cast<const char*>(start.data()) + from, offset - from);
  NpyHeader header = HeaderParser(text, name, code).parse();
  header.data_offset = offset;
  if (!bytes_of(header)) fail(code, name, ": shape ", str(header.shape), " is too large");
  return header;
}

Array npy_array(const NpyHeader& header, std::span<std::byte> elements, std::shared_ptr<void> owner,
                const std::string& name, ErrorCode code) {
  if (header.dtype == DType::kString) fail(code, name, ": contains strings, expected numbers");
  const uint64_t needed = checked_bytes(header, elements.size(), name, code);
  Array array;
  array.dtype = header.dtype;
  array.shape = header.shape;
  array.strides = contiguous_strides(header.shape);
  if (header.fortran_order) {
    Dims reversed(header.shape.rbegin(), header.shape.rend());
    Dims strides = contiguous_strides(reversed);
    array.strides.assign(strides.rbegin(), strides.rend());
  }
  if (needed == 0) return Array::empty(header.dtype, header.shape);
  const auto address = reinterpret_cast<uintptr_t>(elements.data());
  const auto alignment = static_cast<uintptr_t>(std::min<int64_t>(item_size(header.dtype), 8));
  if (address % alignment == 0) {
    array.storage = Storage::borrow(elements.data(), needed, std::move(owner));
  } else {
    array.storage = Storage::allocate(needed);
    std::memcpy(array.storage->data(), elements.data(), needed);
  }
  if (header.dtype == DType::kBool)  // other bytes are not valid bools
    for (std::byte& each : std::span(array.storage->data(), needed))
      if (static_cast<uint8_t>(each) > 1) each = std::byte{1};
  array = array.contiguous();
  if (header.big_endian && item_size(header.dtype) > 1) swap_bytes(array);
  return array;
}

Array read_npy(const std::string& path, ErrorCode code) {
  const auto file = MappedFile::open(path, code);
  const NpyHeader header = parse_npy_header(file->bytes(), path, code);
  return npy_array(header, {file->data() + header.data_offset, file->size() - header.data_offset},
                   file, path, code);
}

NpyStrings npy_strings(const NpyHeader& header, std::span<const std::byte> elements,
                       const std::string& name, ErrorCode code) {
  if (header.dtype != DType::kString)
    fail(code, name, ": holds ", text(header.dtype), ", strings are needed");
  checked_bytes(header, elements.size(), name, code);
  const int64_t count = element_count(std::span<const int64_t>(header.shape));
  // Zero-width strings take no bytes, so the file size does not bound their number.
  const int64_t most = header.string_width == 0
                           ? int64_t{1} << 20
                           : limits().memory / static_cast<int64_t>(sizeof(std::string));
  if (count > most) fail(code, name, ": ", count, " strings are too many for the memory");
  NpyStrings out{header.shape, std::vector<std::string>(static_cast<size_t>(count))};
  const std::byte* at = elements.data();
  const size_t width = header.string_width, step = header.string_bytes ? 1 : 4;
  const auto character = [&](size_t i) {
    if (header.string_bytes) return static_cast<uint32_t>(at[i]);
    uint32_t c = 0;
    std::memcpy(&c, at + i * 4, 4);
    return header.big_endian ? __builtin_bswap32(c) : c;
  };
  // Fortran order: element i of the file has the reversed coordinates.
  const Dims strides = contiguous_strides(header.shape);
  Dims index(header.shape.size(), 0);
  for (int64_t i = 0; i < count; ++i, at += width * step) {
    size_t length = width;
    while (length > 0 && character(length - 1) == 0) --length;
    int64_t place = i;
    if (header.fortran_order) {
      place = 0;
      for (size_t d = 0; d < index.size(); ++d) place += index[d] * strides[d];
      for (size_t d = 0; d < index.size() && ++index[d] == header.shape[d]; ++d) index[d] = 0;
    }
    std::string& text = out.items[static_cast<size_t>(place)];
    if (header.string_bytes) {
      text.assign(reinterpret_cast<const char*>(at), length);
      continue;
    }
    for (size_t k = 0; k < length; ++k) {
      const uint32_t c = character(k);
      if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        fail(code, name, ": element ", i, " holds the code point ", c,
             ", which is not a character");
      append_utf8(text, c);
    }
  }
  return out;
}

std::string npy_file(const NpyStrings& strings, const std::string& name) {
  std::vector<std::vector<uint32_t>> all;
  size_t width = 1;
  for (const std::string& text : strings.items) {
    auto points = code_points(text);
    if (!points) fail(ErrorCode::kData, "'", name, "': a string is not valid UTF-8");
    if (!points->empty() && points->back() == 0)
      fail(ErrorCode::kData, "'", name, "': a string ends in a zero, which NumPy's arrays lose");
    width = std::max(width, points->size());
    all.push_back(std::move(*points));
  }
  if (all.size() * width > static_cast<size_t>(limits().memory) / 4)
    fail(ErrorCode::kDevice, "'", name, "': ", all.size(), " strings of up to ", width,
         " characters are too many for the memory");
  std::string out = header_text(str("<U", width), strings.shape);
  const size_t start = out.size();
  out.resize(start + all.size() * width * 4, '\0');
  for (size_t i = 0; i < all.size(); ++i)
    if (!all[i].empty())
      std::memcpy(out.data() + start + i * width * 4, all[i].data(), all[i].size() * 4);
  return out;
}

bool npy_has(DType dtype) {
  return std::any_of(std::begin(kTypes), std::end(kTypes),
                     [&](const NpyType& each) { return each.dtype == dtype; });
}

Array to_npy_type(const Array& array) {
  if (array.dtype == DType::kBF16) return array.cast(DType::kF32);
  if (npy_has(array.dtype)) return array.contiguous();
  fail(ErrorCode::kUsage, "NumPy has no type for ", text(array.dtype), "; cast the array first");
}

std::string npy_header(const Array& array) {
  std::string_view code;
  for (const NpyType& each : kTypes)
    if (each.dtype == array.dtype) code = each.code;
  return header_text(str(item_size(array.dtype) == 1 ? '|' : '<', code), array.shape);
}

void write_npy(const std::string& path, const Array& array) {
  const Array plain = to_npy_type(array);
  AtomicFile file(path);
  file.write(npy_header(plain));
  file.write(plain.raw(), static_cast<size_t>(plain.size() * item_size(plain.dtype)));
  file.commit();
}

}  // namespace paddle::formats
