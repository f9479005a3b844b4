#include "paddle/array.h"

#include <cstring>
#include <limits>

#include "api/access.h"
#include "base/text.h"
#include "runtime/execute.h"

namespace paddle::v0 {
namespace {

/// In the order of the public DType.
constexpr paddle::DType kDTypes[] = {
    paddle::DType::kBool, paddle::DType::kI8,  paddle::DType::kI16,  paddle::DType::kI32,
    paddle::DType::kI64,  paddle::DType::kU8,  paddle::DType::kU16,  paddle::DType::kU32,
    paddle::DType::kU64,  paddle::DType::kF16, paddle::DType::kBF16, paddle::DType::kF32,
    paddle::DType::kF64,  paddle::DType::kC64, paddle::DType::kC128};
constexpr int kDTypeCount = static_cast<int>(std::size(kDTypes));

[[noreturn]] void reject(const std::string& why) { throw UsageError(ErrorCode::kUsage, why); }

/// The shape, checked: no negative size, and a number of bytes that fits.
const std::vector<int64_t>& checked(DType dtype, const std::vector<int64_t>& shape) {
  int64_t limit = std::numeric_limits<int64_t>::max() / static_cast<int64_t>(dtype_size(dtype));
  for (const int64_t size : shape)
    if (size < 0) reject(str("Array: sizes must not be negative, found ", shape));
  for (const int64_t size : shape) {
    if (size == 0) return shape;
    limit /= size;
  }
  if (limit == 0) reject(str("Array: ", shape, " is beyond the address space"));
  return shape;
}

}  // namespace

paddle::DType engine_dtype(DType dtype) {
  const int index = static_cast<int>(dtype);
  if (index < 0 || index >= kDTypeCount)
    reject(str("unknown DType ", index, ", expected 0 to ", kDTypeCount - 1));
  return kDTypes[index];
}

DType public_dtype(paddle::DType dtype, const std::string& what) {
  paddle::DType held = dtype;
  if (!info(dtype).has_kernels) {
    if (info(dtype).kind == DTypeKind::kSigned) held = paddle::DType::kI8;
    if (info(dtype).kind == DTypeKind::kUnsigned) held = paddle::DType::kU8;
    if (info(dtype).kind == DTypeKind::kFloat) held = paddle::DType::kF32;
  }
  for (int i = 0; i < kDTypeCount; ++i)
    if (kDTypes[i] == held) return static_cast<DType>(i);
  throw ModelError(ErrorCode::kModel,
                   str(what, " is ", paddle::text(dtype),
                       "; arrays hold bool, integers, floats and complex numbers"));
}

const char* dtype_name(DType dtype) { return info(engine_dtype(dtype)).name.data(); }
std::size_t dtype_size(DType dtype) {
  return static_cast<std::size_t>(item_size(engine_dtype(dtype)));
}

const paddle::Array& Access::engine(const Array& array) {
  static const paddle::Array empty = paddle::Array::zeros(paddle::DType::kF32, {0});
  return array.impl_ ? array.impl_->array : empty;
}

Array Access::handle(paddle::Array array) {
  Array out;
  out.impl_ = std::make_shared<Array::Impl>(Array::Impl{std::move(array)});
  return out;
}

Array::Array() = default;
Array::Array(DType dtype, std::vector<int64_t> shape) {
  checked(dtype, shape);
  *this = translated(
      [&] { return Access::handle(paddle::Array::zeros(engine_dtype(dtype), std::move(shape))); });
}
Array::~Array() = default;
Array::Array(const Array&) noexcept = default;
Array::Array(Array&&) noexcept = default;
Array& Array::operator=(const Array&) noexcept = default;
Array& Array::operator=(Array&&) noexcept = default;

Array Array::copy(DType dtype, std::vector<int64_t> shape, const void* data) {
  checked(dtype, shape);
  Array out = translated(
      [&] { return Access::handle(paddle::Array::empty(engine_dtype(dtype), std::move(shape))); });
  if (out.bytes() == 0) return out;
  if (!data) reject("Array::copy: the data is a null pointer");
  std::memcpy(out.raw(), data, out.bytes());
  return out;
}

Array Array::borrow(DType dtype, std::vector<int64_t> shape, void* data,
                    std::shared_ptr<void> owner) {
  checked(dtype, shape);
  paddle::Array out;
  out.dtype = engine_dtype(dtype);
  out.strides = contiguous_strides(shape);
  out.shape = std::move(shape);
  const auto bytes = static_cast<size_t>(storage_bytes(out.dtype, out.size()));
  if (!data && bytes > 0) reject("Array::borrow: the data is a null pointer");
  if (reinterpret_cast<uintptr_t>(data) % dtype_size(dtype) != 0)
    reject(str("Array::borrow: the data is not aligned for ", dtype_name(dtype)));
  return translated([&] {
    out.storage = Storage::borrow(data, bytes, std::move(owner));
    return Access::handle(std::move(out));
  });
}

DType Array::dtype() const noexcept {
  const paddle::DType dtype = Access::engine(*this).dtype;
  for (int i = 0; i < kDTypeCount; ++i)
    if (kDTypes[i] == dtype) return static_cast<DType>(i);
  return DType::kFloat32;  // handles hold the types of the table only
}
const std::vector<int64_t>& Array::shape() const noexcept { return Access::engine(*this).shape; }
int64_t Array::size() const noexcept { return Access::engine(*this).size(); }
std::size_t Array::bytes() const noexcept {
  const paddle::Array& array = Access::engine(*this);
  return static_cast<std::size_t>(storage_bytes(array.dtype, array.size()));
}
void* Array::raw() noexcept { return Access::engine(*this).raw(); }
const void* Array::raw() const noexcept { return Access::engine(*this).raw(); }

Array Array::clone() const { return copy(dtype(), shape(), raw()); }

Array Array::cast(DType to) const {
  return translated([&] {
    return Access::handle(runtime::cast_array(Access::engine(clone()), engine_dtype(to)));
  });
}

Array Array::reshape(std::vector<int64_t> to) const {
  checked(dtype(), to);
  paddle::Array out = Access::engine(*this);
  out.strides = contiguous_strides(to);
  const std::vector<int64_t> from = std::exchange(out.shape, std::move(to));
  if (out.size() != size())
    reject(str("Array::reshape: ", from, " has ", size(), " elements, ", out.shape, " has ",
               out.size()));
  return Access::handle(std::move(out));
}

std::string Array::text() const {
  return translated([&] { return paddle::text(Access::engine(*this)); });
}

void Array::require_dtype(DType wanted) const {
  if (dtype() != wanted)
    reject(str("Array: the elements are ", dtype_name(dtype()), ", not ", dtype_name(wanted)));
}

void Array::require_count(std::size_t count) const {
  if (static_cast<std::size_t>(size()) != count)
    reject(
        str("Array::from: ", shape(), " has ", size(), " elements, ", count, " values are given"));
}

}  // namespace paddle::v0
