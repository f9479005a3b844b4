#include "tensor/dlpack.h"

#include <cstring>

#include "base/error.h"
#include "tensor/device_functions.h"

namespace paddle::dlpack {
namespace {

enum Code : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };

std::optional<DType> dtype_of(const DataType& type) {
  if (type.lanes != 1) return std::nullopt;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const auto its = type_of(dtype);
    if (its && its->code == type.code && its->bits == type.bits) return dtype;
  }
  return std::nullopt;
}

/// The array with the numbers that a view points to.
struct Handed {
  Array array;
  Dims shape, strides;
};

}  // namespace

std::optional<DataType> type_of(DType dtype) {
  const auto bits = static_cast<uint8_t>(info(dtype).bits);
  if (!info(dtype).has_kernels && !is_complex(dtype)) return std::nullopt;
  if (is_bool(dtype)) return DataType{kBool, 8, 1};
  if (dtype == DType::kBF16) return DataType{kBfloat, 16, 1};
  if (is_complex(dtype)) return DataType{kComplex, bits, 1};
  if (is_float(dtype)) return DataType{kFloat, bits, 1};
  return DataType{info(dtype).kind == DTypeKind::kSigned ? kInt : kUInt, bits, 1};
}

Array borrowed(DType dtype, void* data, Dims shape, Dims strides, std::shared_ptr<void> owner,
               paddle::Device device) {
  Array out;
  out.dtype = dtype;
  int64_t lowest = 0, highest = 0;
  bool empty = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    empty = empty || shape[i] == 0;
    const int64_t reach = (shape[i] - 1) * strides[i];
    (reach < 0 ? lowest : highest) += reach;
  }
  if (empty) lowest = highest = 0;
  const int64_t item = item_size(dtype);
  out.shape = std::move(shape);
  out.strides = std::move(strides);
  out.offset = -lowest;
  out.storage =
      Storage::borrow(static_cast<std::byte*>(data) + lowest * item,
                      static_cast<size_t>((highest - lowest + 1) * item), std::move(owner), device);
  return out;
}

Array own_copy(const Array& array) {
  const Array packed = array.contiguous();
  if (packed.storage != array.storage) return packed;
  Array out = Array::empty(packed.dtype, packed.shape);
  std::memcpy(out.raw(), packed.raw(), static_cast<size_t>(storage_bytes(out.dtype, out.size())));
  return out;
}

Array array_of(const View& view, std::shared_ptr<void> owner) {
  constexpr int32_t kMaxAxes = 64;
  std::optional<paddle::Device> device = paddle::Device::cpu();
  if (view.device.type != kCpu) device = device_of_dlpack(view.device.type, view.device.id);
  if (!device)
    fail(ErrorCode::kUsage, "from_dlpack: the memory is on a device of kind ", view.device.type,
         " with the number ", view.device.id, ", which is not known here");
  const auto dtype = dtype_of(view.dtype);
  if (!dtype)
    fail(ErrorCode::kUsage, "from_dlpack: no dtype has code ", int{view.dtype.code}, " with ",
         int{view.dtype.bits}, " bits and ", int{view.dtype.lanes}, " lanes");
  if (view.ndim < 0 || view.ndim > kMaxAxes)
    fail(ErrorCode::kUsage, "from_dlpack: ", view.ndim, " axes");
  Dims shape(view.shape, view.shape + view.ndim);
  for (const int64_t size : shape)
    if (size < 0) fail(ErrorCode::kUsage, "from_dlpack: a size of ", size);
  Dims strides =
      view.strides ? Dims(view.strides, view.strides + view.ndim) : contiguous_strides(shape);
  auto* const data = static_cast<std::byte*>(view.data) + view.byte_offset;
  Array out =
      borrowed(*dtype, data, std::move(shape), std::move(strides), std::move(owner), *device);
  const auto address = reinterpret_cast<uintptr_t>(data);
  if (address % static_cast<uintptr_t>(item_size(*dtype)) == 0) return out;
  if (!device->is_cpu()) fail(ErrorCode::kUsage, "from_dlpack: the elements are not aligned");
  return own_copy(out);
}

template <class Form>
Form* managed(Array array, uint64_t flags) {
  const auto type = type_of(array.dtype);
  if (!type) fail(ErrorCode::kUsage, "DLPack has no type ", text(array.dtype));
  auto handed = std::make_unique<Handed>();
  const paddle::Device device = array.device();
  const paddle_device_properties facts = device_properties(device);
  if (facts.dlpack_type == 0)
    fail(ErrorCode::kUsage, "DLPack has no name for the device ", device.text());
  synchronize(device);
  handed->array = std::move(array);
  handed->shape = handed->array.shape;
  handed->strides = handed->array.strides;
  auto out = std::make_unique<Form>();
  if constexpr (std::is_same_v<Form, Versioned>) {
    out->major = 1;
    out->minor = 0;
    out->flags = flags;
  }
  out->tensor = {handed->array.address(),
                 {facts.dlpack_type, device.index},
                 static_cast<int32_t>(handed->shape.size()),
                 *type,
                 handed->shape.data(),
                 handed->strides.data(),
                 0};
  out->deleter = [](Form* self) {
    delete static_cast<Handed*>(self->context);
    delete self;
  };
  out->context = handed.release();
  return out.release();
}
template Managed* managed<Managed>(Array, uint64_t);
template Versioned* managed<Versioned>(Array, uint64_t);

}  // namespace paddle::dlpack
