#include "formats/onnx/tensors.h"

#include <sys/stat.h>

#include <cstring>

#include "formats/generated/onnx/wire.pb.h"

namespace paddle::formats::onnx {
namespace {

constexpr int kMaxRank = 64;
constexpr DType kTypes[] = {
    DType::kF32,  DType::kU8,       DType::kI8,         DType::kU16,    DType::kI16,
    DType::kI32,  DType::kI64,      DType::kString,     DType::kBool,   DType::kF16,
    DType::kF64,  DType::kU32,      DType::kU64,        DType::kC64,    DType::kC128,
    DType::kBF16, DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ,
    DType::kU4,   DType::kI4,       DType::kF4E2M1,     DType::kF8E8M0, DType::kU2,
    DType::kI2};

/// Narrows typed field values to `Stored` elements: numbers for float types, raw bits for small
/// types.
template <class Stored, class Field>
void copy_as(const Field& values, Array& out) {
  Stored* const target = reinterpret_cast<Stored*>(out.raw());
  for (int i = 0; i < values.size(); ++i) target[i] = static_cast<Stored>(values[i]);
}

/// The typed message field of a dtype: number of values and how to copy them.
struct Field {
  int count = 0;
  void (*copy)(const onnx_wire::Tensor&, Array&) = nullptr;
};

Field field_of(const onnx_wire::Tensor& m, DType dtype) {
  using Message = const onnx_wire::Tensor&;
  switch (dtype) {
    case DType::kF32:
    case DType::kC64:
      return {m.float_data_size(), [](Message t, Array& a) { copy_as<float>(t.float_data(), a); }};
    case DType::kF64:
    case DType::kC128:
      return {m.double_data_size(),
              [](Message t, Array& a) { copy_as<double>(t.double_data(), a); }};
    case DType::kI64:
      return {m.int64_data_size(),
              [](Message t, Array& a) { copy_as<int64_t>(t.int64_data(), a); }};
    case DType::kU64:
      return {m.uint64_data_size(),
              [](Message t, Array& a) { copy_as<uint64_t>(t.uint64_data(), a); }};
    case DType::kU32:
      return {m.uint64_data_size(),
              [](Message t, Array& a) { copy_as<uint32_t>(t.uint64_data(), a); }};
    case DType::kI32:
      return {m.int32_data_size(),
              [](Message t, Array& a) { copy_as<int32_t>(t.int32_data(), a); }};
    case DType::kI16:
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16:
      return {m.int32_data_size(),
              [](Message t, Array& a) { copy_as<uint16_t>(t.int32_data(), a); }};
    case DType::kBool:
      return {m.int32_data_size(), [](Message t, Array& a) { copy_as<bool>(t.int32_data(), a); }};
    default:  // 8-bit types, or packed sub-byte types
      return {m.int32_data_size(),
              [](Message t, Array& a) { copy_as<uint8_t>(t.int32_data(), a); }};
  }
}

/// Field values per array: complex numbers take two, packed types share one.
int64_t field_values(DType dtype, int64_t count) {
  if (is_complex(dtype)) return 2 * count;
  return info(dtype).bits < 8 ? storage_bytes(dtype, count) : count;
}

constexpr size_t kSmall = size_t{4} << 10;  // copied immediately if misaligned

/// Wraps these bytes: shared if aligned, otherwise copied at the latest on first access.
Array array_on(std::byte* data, DType dtype, const Dims& shape, std::shared_ptr<void> owner,
               ArrayPool& pool) {
  const int64_t count = element_count(std::span<const int64_t>(shape));
  const auto bytes = static_cast<size_t>(storage_bytes(dtype, count));
  const auto unit =
      static_cast<uintptr_t>(is_complex(dtype) ? item_size(dtype) / 2 : item_size(dtype));
  const bool aligned = reinterpret_cast<uintptr_t>(data) % unit == 0;
  if ((aligned || bytes >= kSmall) && dtype != DType::kBool) {
    Array out;
    out.dtype = dtype;
    out.shape = shape;
    out.strides = contiguous_strides(shape);
    out.storage = aligned ? Storage::borrow(data, bytes, std::move(owner))
                          : Storage::borrow_unaligned(data, bytes, std::move(owner));
    return out;
  }
  Array out = pool.empty(dtype, shape);
  if (bytes > 0) std::memcpy(out.storage->data(), data, bytes);
  forget_mapped(data, bytes);
  if (dtype == DType::kBool)  // any non-zero byte is true
    for (size_t i = 0; i < bytes; ++i)
      out.storage->data()[i] = std::byte{out.storage->data()[i] != std::byte{0}};
  return out;
}

}  // namespace

std::optional<DType> dtype_of_number(int64_t number) {
  if (number < 1 || number > static_cast<int64_t>(std::size(kTypes))) return std::nullopt;
  return kTypes[number - 1];
}

int64_t number_of_dtype(DType dtype) {
  for (size_t i = 0; i < std::size(kTypes); ++i)
    if (kTypes[i] == dtype) return static_cast<int64_t>(i) + 1;
  return 0;
}

TensorReader::TensorReader(std::shared_ptr<MappedFile> file, std::string folder, ErrorCode code)
    : file_(std::move(file)), folder_(std::move(folder)), code_(code) {}

TensorData TensorReader::read(const onnx_wire::Tensor& m) {
  TensorData out;
  out.name = m.name();
  const std::string what = "tensor '" + m.name() + "'";
  const auto dtype = dtype_of_number(m.data_type());
  if (!dtype) bad(what, " has the element type ", m.data_type(), ", which is not supported");
  out.dtype = *dtype;
  if (m.dims_size() > kMaxRank) bad(what, " has more than ", kMaxRank, " axes");
  int64_t count = 1;
  for (const int64_t d : m.dims()) {
    if (d < 0) bad(what, " has the negative size ", d);
    if (d > 0 && count > (int64_t{1} << 56) / d) bad(what, " has an impossible shape");
    count *= d;
    out.shape.push_back(d);
  }
  if (*dtype == DType::kString) {
    if (m.string_data_size() != count)
      bad(what, ": the shape ", str(out.shape), " has ", count, " elements, the file has ",
          m.string_data_size(), " strings");
    out.strings.assign(m.string_data().begin(), m.string_data().end());
    return out;
  }
  const auto bytes = static_cast<uint64_t>(storage_bytes(*dtype, count));
  const auto check = [&](uint64_t found) {
    if (found != bytes)
      bad(what, ": ", text(*dtype), str(out.shape), " needs ", bytes, " bytes, the file has ",
          found);
  };
  if (m.data_location() == 1) {
    const External e = find_external(m, what, bytes);
    check(e.size);
    out.array = array_on(e.file->data() + e.offset, *dtype, out.shape, e.file, pool_);
  } else if (m.has_payload_offset()) {
    check(m.payload_size());
    out.array = array_on(file_->data() + m.payload_offset(), *dtype, out.shape, file_, pool_);
  } else if (m.has_raw_data()) {
    check(m.raw_data().size());
    out.array = Array::empty(*dtype, out.shape);
    if (bytes > 0) std::memcpy(out.array.storage->data(), m.raw_data().data(), bytes);
    if (*dtype == DType::kBool)
      for (int64_t i = 0; i < count; ++i)
        reinterpret_cast<uint8_t*>(out.array.raw())[i] = m.raw_data()[static_cast<size_t>(i)] != 0;
  } else {
    const Field field = field_of(m, *dtype);
    if (field.count != field_values(*dtype, count))
      bad(what, ": ", text(*dtype), str(out.shape), " needs ", field_values(*dtype, count),
          " values, the file has ", field.count);
    out.array = Array::empty(*dtype, out.shape);
    field.copy(m, out.array);
  }
  return out;
}

SparseData TensorReader::read(const onnx_wire::SparseTensor& m) {
  SparseData out;
  out.values = read(m.values());
  out.indices = read(m.indices());
  int64_t count = 1;
  for (const int64_t d : m.dims()) {
    if (d < 0 || (d > 0 && count > (int64_t{1} << 40) / d))
      bad("the sparse tensor '", m.values().name(), "' has an impossible shape");
    count *= d;
    out.shape.push_back(d);
  }
  const size_t rank = out.indices.shape.size();
  if (info(out.values.dtype).bits < 8)
    bad("the sparse tensor '", m.values().name(), "' holds ", text(out.values.dtype),
        ", which is not supported");
  if (out.values.shape.size() != 1 || out.indices.dtype != DType::kI64 || rank < 1 || rank > 2 ||
      out.indices.shape[0] != out.values.shape[0] ||
      (rank == 2 && out.indices.shape[1] != static_cast<int64_t>(out.shape.size())))
    bad("the sparse tensor '", m.values().name(), "' has values and indices of different sizes");
  return out;
}

TensorReader::External TensorReader::find_external(const onnx_wire::Tensor& m,
                                                   const std::string& what, uint64_t needed) {
  std::string location;
  External out;
  std::optional<uint64_t> length;
  const auto number = [&](const std::string& text, const char* key) {
    if (text.empty() || text.size() > 18 ||
        text.find_first_not_of("0123456789") != std::string::npos)
      bad(what, ": the ", key, " '", text, "' of its external data is not a number");
    return std::stoull(text);
  };
  for (const onnx_wire::Entry& e : m.external_data()) {
    if (e.key() == "location") location = e.value();
    if (e.key() == "offset") out.offset = number(e.value(), "offset");
    if (e.key() == "length") length = number(e.value(), "length");
  }
  out.file = open_external(location, what);
  if (out.offset > out.file->size() || length.value_or(needed) > out.file->size() - out.offset)
    bad(what, ": its ", length.value_or(needed), " bytes at ", out.offset, " of '", location,
        "' exceed that file, which has ", out.file->size());
  out.size = length.value_or(needed);
  return out;
}

std::shared_ptr<MappedFile> TensorReader::open_external(const std::string& location,
                                                        const std::string& what) {
  if (const auto it = external_.find(location); it != external_.end()) return it->second;
  if (location.empty()) bad(what, ": its external data has no location");
  std::string path = folder_;
  for (const std::string& part : split(location, '/')) {
    if (part == ".") continue;
    if (part.empty() || part == ".." || part.find('\0') != std::string::npos)
      bad(what, ": the external data '", location, "' must be a file inside the model's folder");
    path += "/" + part;
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0)
      bad(what, ": its external data '", location, "' does not exist");
    if (S_ISLNK(status.st_mode))
      bad(what, ": the external data '", location, "' goes through a symbolic link");
  }
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
    bad(what, ": the external data '", location, "' is not a regular file");
  return external_.emplace(location, MappedFile::open(path, code_)).first->second;
}

}  // namespace paddle::formats::onnx
