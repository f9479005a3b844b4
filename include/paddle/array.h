#pragma once
// Array: a dense, row-major, n-dimensional array in memory.
//
//   paddle::Array x = paddle::Array::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
//   x.data<float>()[0] = 7;
//
// Copies of an Array share their elements, as copies of a std::shared_ptr do; `clone` makes an
// independent one. Threads may read one array at a time together; writing needs a lock of yours.

#include <complex>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "paddle/config.h"

struct DLManagedTensor;  // of DLPack's dlpack.h

namespace paddle::v0 {

/// Element types. The values never change.
enum class DType : int {
  kBool = 0,
  kInt8 = 1,
  kInt16 = 2,
  kInt32 = 3,
  kInt64 = 4,
  kUInt8 = 5,
  kUInt16 = 6,
  kUInt32 = 7,
  kUInt64 = 8,
  kFloat16 = 9,    ///< IEEE half, 2 bytes; C++20 has no type for it
  kBFloat16 = 10,  ///< the upper 2 bytes of a float; C++20 has no type for it
  kFloat32 = 11,
  kFloat64 = 12,
  kComplex64 = 13,   ///< two floats
  kComplex128 = 14,  ///< two doubles
};

/// "float32".
PADDLE_API const char* dtype_name(DType dtype);
/// Bytes of one element.
PADDLE_API std::size_t dtype_size(DType dtype);

/// The DType of a C++ type. Types without an element type do not compile.
template <class T>
struct DTypeOf;
// clang-format off
template <> struct DTypeOf<bool> { static constexpr DType value = DType::kBool; };
template <> struct DTypeOf<int8_t> { static constexpr DType value = DType::kInt8; };
template <> struct DTypeOf<int16_t> { static constexpr DType value = DType::kInt16; };
template <> struct DTypeOf<int32_t> { static constexpr DType value = DType::kInt32; };
template <> struct DTypeOf<int64_t> { static constexpr DType value = DType::kInt64; };
template <> struct DTypeOf<uint8_t> { static constexpr DType value = DType::kUInt8; };
template <> struct DTypeOf<uint16_t> { static constexpr DType value = DType::kUInt16; };
template <> struct DTypeOf<uint32_t> { static constexpr DType value = DType::kUInt32; };
template <> struct DTypeOf<uint64_t> { static constexpr DType value = DType::kUInt64; };
template <> struct DTypeOf<float> { static constexpr DType value = DType::kFloat32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::kFloat64; };
template <> struct DTypeOf<std::complex<float>> { static constexpr DType value = DType::kComplex64; };
template <> struct DTypeOf<std::complex<double>> { static constexpr DType value = DType::kComplex128; };
// clang-format on

class PADDLE_API Array {
 public:
  /// float32 of shape [0].
  Array();
  /// Zeros. UsageError for a negative size or one beyond the address space, DeviceError if there is
  /// no memory.
  Array(DType dtype, std::vector<int64_t> shape);
  ~Array();
  Array(const Array&) noexcept;
  Array(Array&&) noexcept;
  Array& operator=(const Array&) noexcept;
  Array& operator=(Array&&) noexcept;

  /// Copies the elements, which lie in row-major order at `data`.
  static Array copy(DType dtype, std::vector<int64_t> shape, const void* data);
  /// Uses the memory at `data` without a copy; it must be aligned for the element type. `owner`
  /// keeps it alive as long as the array needs it; with a null `owner` the caller does.
  static Array borrow(DType dtype, std::vector<int64_t> shape, void* data,
                      std::shared_ptr<void> owner = nullptr);
  /// Copies `values`; UsageError unless there is one for each element.
  template <class T>
  static Array from(std::vector<int64_t> shape, const std::vector<T>& values) {
    Array out(DTypeOf<T>::value, std::move(shape));
    out.require_count(values.size());
    T* to = out.data<T>();
    for (std::size_t i = 0; i < values.size(); ++i) to[i] = values[i];
    return out;
  }
  /// A 0-dimensional array.
  template <class T>
  static Array scalar(T value) {
    return from<T>({}, {value});
  }
  /// Takes over an array of another library on the CPU (DLPack version 0.x, as dlpack.h defines
  /// it): without a copy if it is row-major and aligned, else as a copy. Its deleter is called when
  /// the elements are no longer used; after an exception the caller keeps it. UsageError for other
  /// devices and element types.
  static Array from_dlpack(DLManagedTensor* tensor);
  /// This array for another library, without a copy. The receiver calls its deleter; until then the
  /// elements stay.
  DLManagedTensor* to_dlpack() const;

  DType dtype() const noexcept;
  const std::vector<int64_t>& shape() const noexcept;
  /// Number of elements.
  int64_t size() const noexcept;
  std::size_t bytes() const noexcept;

  /// The elements in row-major order, valid as long as this array or a copy of it lives.
  void* raw() noexcept;
  const void* raw() const noexcept;
  /// The same with a type; UsageError if it is not that of the elements.
  template <class T>
  T* data() {
    require_dtype(DTypeOf<T>::value);
    return static_cast<T*>(raw());
  }
  template <class T>
  const T* data() const {
    require_dtype(DTypeOf<T>::value);
    return static_cast<const T*>(raw());
  }
  template <class T>
  std::vector<T> to_vector() const {
    const T* const from = data<T>();
    return std::vector<T>(from, from + size());
  }

  /// An independent copy.
  Array clone() const;
  /// A copy with another element type: floats to integers truncate, to bool compare with 0, complex
  /// numbers to others drop the imaginary part.
  Array cast(DType dtype) const;
  /// The same elements under another shape; UsageError if their number differs.
  Array reshape(std::vector<int64_t> shape) const;
  /// As NumPy prints it, long axes abbreviated.
  std::string text() const;

 private:
  struct Impl;
  friend struct Access;
  void require_dtype(DType dtype) const;
  void require_count(std::size_t count) const;
  std::shared_ptr<Impl> impl_;
};

/// Writes arrays by name into an `.npz` or `.safetensors` file, or one array into an `.npy` file,
/// which keeps no name. The file appears whole or not at all. UsageError for other endings and for
/// types that the format lacks (bfloat16 in NumPy's files), DeviceError if it cannot be written.
PADDLE_API void save_arrays(const std::string& path, const std::map<std::string, Array>& arrays);
/// The arrays of such a file; that of an `.npy` file is named "". DataError for damaged files.
PADDLE_API std::map<std::string, Array> load_arrays(const std::string& path);

}  // namespace paddle::v0
