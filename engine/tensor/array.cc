// Storage and Array: concrete values, and their printing.

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/files.h"
#include "base/parallel_copy.h"
#include "paddle/plugin/device.h"
#include "tensor/complex.h"
#include "tensor/small_blocks.h"
#include "tensor/strided_copy.h"
#include "tensor/tensor.h"
#include "tensor/to_integer.h"

namespace paddle {

std::string TensorType::text() const {
  return paddle::text(dtype) + (ranked ? paddle::text(shape) : "[...]");
}

bool same_type(const TensorType& a, const TensorType& b) {
  return a.dtype == b.dtype && a.ranked == b.ranked && same_shape(a.shape, b.shape);
}

// ---- storage ------------------------------------------------------------------------------------

Storage::Storage(Key, std::byte* data, size_t bytes, bool owned, std::shared_ptr<void> owner,
                 Device device)
    : data_(data), bytes_(bytes), owned_(owned), device_(device), owner_(std::move(owner)) {}

Storage::~Storage() {
  if (owned_) release_block(data_, bytes_);
}

namespace {

/// Large allocations use whole huge pages, so that rows of big tables need no page walks.
constexpr size_t kHugePage = size_t{1} << 21;
constexpr size_t kLarge = 4 * kHugePage;

}  // namespace

std::shared_ptr<Storage> Storage::zeros(size_t bytes) {
  if (bytes < kLarge) {
    auto out = allocate(bytes);
    std::memset(out->data_, 0, bytes);
    return out;
  }
  auto out = map_zero_pages(bytes, 0);
  madvise(out->data_, bytes, MADV_HUGEPAGE);  // advice: what fails changes nothing
  return out;
}

std::shared_ptr<Storage> Storage::reserve(size_t bytes) {
  return map_zero_pages(std::max<size_t>(bytes, 1), MAP_NORESERVE);
}

std::shared_ptr<Storage> Storage::map_zero_pages(size_t bytes, int flags) {
  // Fresh pages of the system are zero. The mapping holds one page more, to begin at a huge one.
  const size_t mapped = bytes > SIZE_MAX - kHugePage ? bytes : bytes + kHugePage;
  void* const data =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (data == MAP_FAILED)
    fail(ErrorCode::kDevice, "out of memory: cannot allocate ", human_bytes(bytes));
  std::shared_ptr<void> owner(data, [mapped](void* p) { munmap(p, mapped); });
  const auto address = reinterpret_cast<uintptr_t>(data);
  auto* const begin =
      static_cast<std::byte*>(data) + ((address + kHugePage - 1) / kHugePage * kHugePage - address);
  return borrow(begin, bytes, std::move(owner));
}

std::shared_ptr<Storage> Storage::allocate(size_t bytes) {
  if (bytes <= kMaxPooled)
    return std::make_shared<Storage>(Key{}, take_block(bytes), bytes, true, nullptr);
  const bool large = bytes >= kLarge;
  const size_t alignment = large ? kHugePage : 64;
  const size_t rounded = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* data = rounded >= bytes ? std::aligned_alloc(alignment, rounded) : nullptr;
  if (!data) fail(ErrorCode::kDevice, "out of memory: cannot allocate ", human_bytes(bytes));
  if (large) madvise(data, rounded, MADV_HUGEPAGE);  // advice: what fails changes nothing
  return std::make_shared<Storage>(Key{}, static_cast<std::byte*>(data), bytes, true, nullptr);
}

std::shared_ptr<Storage> Storage::allocate(size_t bytes, Device device) {
  if (device.is_cpu()) return allocate(bytes);
  void* data = nullptr;
  check_device(device, device_api(device).allocate(device.index, bytes, &data));
  std::shared_ptr<void> owner(data, [device](void* memory) {
    device_api(device).release(device.index, memory);  // errors ignored: destructor
  });
  return borrow(data, bytes, std::move(owner), device);
}

void Storage::reject_host_access() const {
  fail(ErrorCode::kInternal, "the host accesses memory of the device ", device_.text());
}

std::shared_ptr<Storage> Storage::borrow(void* data, size_t bytes, std::shared_ptr<void> owner,
                                         Device device) {
  return std::make_shared<Storage>(Key{}, static_cast<std::byte*>(data), bytes, false,
                                   std::move(owner), device);
}

std::shared_ptr<Storage> Storage::borrow_unaligned(const void* data, size_t bytes,
                                                   std::shared_ptr<void> owner) {
  auto out = borrow(nullptr, bytes, std::move(owner));
  out->unaligned_ = std::make_unique<Unaligned>();
  out->unaligned_->data = static_cast<const std::byte*>(data);
  return out;
}

void Storage::align() {
  std::call_once(unaligned_->once, [&] {
    const std::shared_ptr<Storage> copy = allocate(bytes_);
    const std::byte* const from = unaligned_->data;
    // Both sides are touched for the first time here, which costs more than the copy itself.
    parallel_copy(copy->data_, from, static_cast<int64_t>(bytes_), int64_t{1} << 18);
    forget_mapped(from, bytes_);
    data_ = std::exchange(copy->data_, nullptr);
    owned_ = std::exchange(copy->owned_, false);
  });
}

// ---- arrays -------------------------------------------------------------------------------------

Dims contiguous_strides(std::span<const int64_t> shape) {
  Dims strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    // Without elements a shape may be of any size, and strides mean nothing.
    __builtin_mul_overflow(stride, std::max<int64_t>(shape[i], 1), &stride);
  }
  return strides;
}

namespace {

Array contiguous_on(std::shared_ptr<Storage> (*make)(size_t), DType dtype, Dims shape) {
  for (const int64_t d : shape)
    if (d < 0) fail(ErrorCode::kUsage, "negative size in shape ", str(shape));
  Array out;
  out.dtype = dtype;
  out.strides = contiguous_strides(shape);
  out.storage = make(
      static_cast<size_t>(storage_bytes(dtype, element_count(std::span<const int64_t>(shape)))));
  out.shape = std::move(shape);
  return out;
}

}  // namespace

Array Array::empty(DType dtype, Dims shape) {
  return contiguous_on(Storage::allocate, dtype, std::move(shape));
}

Array Array::empty(DType dtype, Dims shape, Device device) {
  if (device.is_cpu()) return empty(dtype, std::move(shape));
  Array out;
  out.dtype = dtype;
  out.strides = contiguous_strides(shape);
  out.shape = std::move(shape);
  out.storage = Storage::allocate(static_cast<size_t>(storage_bytes(dtype, out.size())), device);
  return out;
}

Array Array::zeros(DType dtype, Dims shape) {
  return contiguous_on(Storage::zeros, dtype, std::move(shape));
}

Array Array::reserve(DType dtype, Dims shape) {
  return contiguous_on(Storage::reserve, dtype, std::move(shape));
}

bool Array::is_contiguous() const {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != expected) return false;
    __builtin_mul_overflow(expected, shape[i], &expected);
  }
  return true;
}

Array Array::contiguous() const {
  if (is_contiguous()) return *this;
  Array out = empty(dtype, shape);
  StridedCopy(shape, strides, item_size(dtype)).run(raw(), out.raw());
  return out;
}

namespace {

/// Copies `bytes` between the host and a device and waits until that is done.
void copy_and_wait(Device device, void* to, const void* from, size_t bytes, paddle_copy_kind kind) {
  const paddle_device_api& api = device_api(device);
  if (bytes > 0) check_device(device, api.copy(compute_stream(device), to, from, bytes, kind));
  synchronize(device);
}

/// The elements between the first and the last of a strided window on a device, as a window on
/// host memory.
Array window_on_host(const Array& array) {
  int64_t lowest = 0, highest = 0;
  for (size_t i = 0; i < array.shape.size(); ++i) {
    const int64_t reach = (array.shape[i] - 1) * array.strides[i];
    (reach < 0 ? lowest : highest) += reach;
  }
  Array out = array;
  out.offset = -lowest;
  const int64_t item = item_size(array.dtype);
  const auto bytes = static_cast<size_t>(storage_bytes(array.dtype, highest - lowest + 1));
  out.storage = Storage::allocate(bytes);
  copy_and_wait(array.device(), out.storage->data(),
                static_cast<const std::byte*>(array.address()) + lowest * item, bytes,
                PADDLE_COPY_TO_HOST);
  return out;
}

}  // namespace

Array Array::to(Device target) const {
  const Device source = device();
  if (source == target) return *this;
  if (!source.is_cpu()) {
    if (size() == 0) return empty(dtype, shape, target);
    return window_on_host(*this).contiguous().to(target);
  }
  const Array packed = contiguous();
  Array out = empty(dtype, shape, target);
  copy_and_wait(target, out.address(), packed.raw(),
                static_cast<size_t>(storage_bytes(dtype, size())), PADDLE_COPY_TO_DEVICE);
  return out;
}

namespace {

int64_t element_offset(const Array& a, int64_t flat) {
  int64_t at = 0;
  for (size_t i = a.shape.size(); i-- > 0;) {
    at += flat % a.shape[i] * a.strides[i];
    flat /= a.shape[i];
  }
  return at;
}

}  // namespace

double Array::number(int64_t flat) const {
  const int64_t at = element_offset(*this, flat);
  return visit_dtype(dtype, [&](auto tag) -> double {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
      return static_cast<double>(static_cast<float>(data<T>()[at]));
    else
      return static_cast<double>(data<T>()[at]);
  });
}

std::complex<double> Array::complex_number(int64_t flat) const {
  if (!is_complex(dtype)) return number(flat);
  const int64_t at = element_offset(*this, flat);
  return visit_complex(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return std::complex<double>(data<T>()[at]);
  });
}

int64_t Array::integer(int64_t flat) const {
  const int64_t at = element_offset(*this, flat);
  return visit_dtype(dtype, [&](auto tag) -> int64_t {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      return static_cast<int64_t>(data<T>()[at]);
    } else {
      const double value = number(flat);
      if (!(std::abs(value) < 0x1p63)) fail(ErrorCode::kUsage, value, " is not a 64-bit integer");
      return static_cast<int64_t>(value);
    }
  });
}

namespace {

template <class To, class From>
To cast_value(From value) {
  if constexpr (std::is_same_v<From, To>)
    return value;
  else if constexpr (std::is_same_v<From, float16> || std::is_same_v<From, bfloat16>)
    return cast_value<To>(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, bool>)
    return value != From(0);
  else if constexpr (kIsComplex<From> && kIsComplex<To>)
    return To(value);
  else if constexpr (kIsComplex<From>)  // drops the imaginary part
    return cast_value<To>(value.real());
  else if constexpr (kIsComplex<To>)
    return To(static_cast<typename To::value_type>(value));
  else if constexpr (std::is_same_v<To, float16> || std::is_same_v<To, bfloat16>)
    return To(static_cast<float>(value));
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return to_integer<To>(value);
  else
    return static_cast<To>(value);
}

}  // namespace

Array Array::cast(DType to) const {
  const Array packed = contiguous();
  if (to == dtype) return packed;
  Array out = empty(to, shape);
  const int64_t count = size();
  visit_number(dtype, [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    const From* source = packed.data<From>();
    visit_number(to, [&](auto to_tag) {
      using To = typename decltype(to_tag)::type;
      To* target = out.data<To>();
      for (int64_t i = 0; i < count; ++i) target[i] = cast_value<To>(source[i]);
    });
  });
  return out;
}

// ---- printing -----------------------------------------------------------------------------------

namespace {

std::string element_text(const Array& a, int64_t flat) {
  if (is_complex(a.dtype)) {
    const std::complex<double> z = a.complex_number(flat);
    const auto part = [&](double v) {
      return a.dtype == DType::kC128 ? format_double(v) : format_float(static_cast<float>(v));
    };
    return part(z.real()) + (std::signbit(z.imag()) ? "-" : "+") + part(std::abs(z.imag())) + "j";
  }
  if (!info(a.dtype).has_kernels) return "?";
  if (a.dtype == DType::kBool) return a.integer(flat) ? "true" : "false";
  if (a.dtype == DType::kF64) return format_double(a.number(flat));
  if (is_float(a.dtype)) return format_float(static_cast<float>(a.number(flat)));
  if (a.dtype == DType::kU64) return std::to_string(static_cast<uint64_t>(a.integer(flat)));
  return std::to_string(a.integer(flat));
}

void print(const Array& a, size_t axis, int64_t flat, std::string& out) {
  constexpr int64_t kEdge = 3;
  if (axis == a.shape.size()) {
    out += element_text(a, flat);
    return;
  }
  const int64_t n = a.shape[axis];
  out += '[';
  const bool abbreviate = n > 2 * kEdge + 1 && a.size() > 1000;
  for (int64_t i = 0; i < n; ++i) {
    if (abbreviate && i == kEdge) {
      out += ", ...";
      i = n - kEdge;
    }
    if (i) out += axis + 1 == a.shape.size() ? ", " : ",\n" + std::string(axis + 1, ' ');
    print(a, axis + 1, flat * n + i, out);
  }
  out += ']';
}

}  // namespace

std::string text(const Array& array) {
  std::string out;
  print(array, 0, 0, out);
  return out;
}

}  // namespace paddle
