#pragma once
// Arrays in the structures of DLPack, in which libraries pass arrays to each other without a copy:
// version 1.0 and the form before it.
// Layout: https://github.com/dmlc/dlpack

#include <cstdint>
#include <memory>
#include <optional>

#include "tensor/tensor.h"

namespace paddle::dlpack {

struct Device {
  int32_t type, id;
};
struct DataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct View {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct Managed {
  View tensor;
  void* context;
  void (*deleter)(Managed*);
};
struct Versioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(Versioned*);
  uint64_t flags;
  View tensor;
};
inline constexpr int32_t kCpu = 1;
inline constexpr uint64_t kReadOnly = 1, kCopied = 2;

/// Nothing for types that DLPack lacks.
std::optional<DataType> type_of(DType dtype);

/// Strided memory of another owner as an array.
Array borrowed(DType dtype, void* data, Dims shape, Dims strides, std::shared_ptr<void> owner,
               paddle::Device device = {});
/// A contiguous copy.
Array own_copy(const Array& array);

/// The array that a view describes, copied only if its elements are not aligned. Memory of a device
/// stays there, and its owner has made it ready. kUsage for unknown devices, types and impossible
/// shapes.
Array array_of(const View& view, std::shared_ptr<void> owner);

/// `array` for a receiver, who calls the deleter. `Form` is Managed or Versioned. Waits for the
/// kernels that compute it. kUsage for types and devices that DLPack lacks.
template <class Form>
Form* managed(Array array, uint64_t flags = 0);

}  // namespace paddle::dlpack
