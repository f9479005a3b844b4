#pragma once
// Tensor: a handle to a value that some interpreter owns. The eager executor's values are Arrays
// (strided windows on shared storage); the tracer's are SSA values. Code in upper rooms is
// written once against Tensor and the functions of ops/ and runs under any interpreter.
//
// A handle names a *cell*. Values are immutable; an in-place write puts a new value into the cell
// and, if the cell is a view, replays the write onto its base (see ops/inplace.h), so that
// in-place code means the same eagerly and traced.

#include <complex>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tensor/device.h"
#include "tensor/dim.h"
#include "tensor/dtype.h"

namespace paddle {

/// The type of a tensor: known without running anything.
struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  bool ranked = true;        ///< false: not even the rank is known, and `shape` is empty
  bool weak = false;         ///< came from a number: promotes by kind, never by width
  std::string text() const;  ///< "float32[batch, 3]"
};
bool same_type(const TensorType& a, const TensorType& b);

/// Bytes on a device. Copies of the handle share it; `owner` keeps mapped files and the like alive.
class Storage {
  struct Key {};  ///< only the functions below make one

 public:
  Storage(Key, std::byte* data, size_t bytes, bool owned, std::shared_ptr<void> owner,
          Device device = {});
  static std::shared_ptr<Storage> allocate(size_t bytes);  ///< 64-byte aligned; kDevice if it fails
  static std::shared_ptr<Storage> allocate(size_t bytes, Device device);
  /// The same, filled with zeros; large ones take memory only where they are written.
  static std::shared_ptr<Storage> zeros(size_t bytes);
  /// Zeros of a size that the machine need not have, for programs that are planned and never run.
  static std::shared_ptr<Storage> reserve(size_t bytes);
  static std::shared_ptr<Storage> borrow(void* data, size_t bytes, std::shared_ptr<void> owner,
                                         Device device = {});
  /// Bytes at any address, as a file holds them: `data` makes an aligned copy when first asked.
  static std::shared_ptr<Storage> borrow_unaligned(const void* data, size_t bytes,
                                                   std::shared_ptr<void> owner);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  /// For the host to read and write; kInternal if the memory is that of another device.
  std::byte* data() {
    if (!device_.is_cpu()) reject_host_access();
    return address();
  }
  /// The address on the device, for kernels and copies.
  std::byte* address() {
    if (unaligned_) align();
    return data_;
  }
  Device device() const { return device_; }
  /// Where the bytes were first, whether aligned or not.
  const std::byte* source() const { return unaligned_ ? unaligned_->data : data_; }
  size_t bytes() const { return bytes_; }

 private:
  struct Unaligned {
    const std::byte* data;
    std::once_flag once;
  };
  void align();
  [[noreturn]] void reject_host_access() const;
  static std::shared_ptr<Storage> map_zero_pages(size_t bytes, int flags);
  std::byte* data_;
  size_t bytes_;
  bool owned_;
  Device device_;
  std::shared_ptr<void> owner_;
  std::unique_ptr<Unaligned> unaligned_;
};

struct Array;

/// The content of a cell; each interpreter derives its own.
struct Content {
  virtual ~Content() = default;
  /// The content as a concrete value; null if it is none.
  virtual const Array* concrete() const { return nullptr; }
};

/// A concrete value: a strided window on storage. Strides and offset count elements.
struct Array : Content {
  DType dtype = DType::kF32;
  Dims shape;
  Dims strides;
  int64_t offset = 0;
  std::shared_ptr<Storage> storage;

  const Array* concrete() const override { return this; }
  static Array empty(DType dtype, Dims shape);  ///< contiguous, uninitialized
  static Array empty(DType dtype, Dims shape, Device device);
  static Array zeros(DType dtype, Dims shape);
  static Array reserve(DType dtype, Dims shape);  ///< see Storage::reserve
  template <class T>
  static Array from(const std::vector<T>& values, Dims shape) {
    Array out = empty(dtype_of<T>(), std::move(shape));
    ensure(static_cast<int64_t>(values.size()) == out.size(), "Array::from: sizes differ");
    for (size_t i = 0; i < values.size(); ++i) out.data<T>()[i] = values[i];
    return out;
  }
  template <class T>
  static Array scalar(T value) {
    return from<T>(std::vector<T>{value}, {});
  }

  int64_t size() const { return element_count(std::span<const int64_t>(shape)); }
  int64_t ndim() const { return static_cast<int64_t>(shape.size()); }
  bool is_contiguous() const;
  Array contiguous() const;  ///< itself if it is, else a packed copy
  Device device() const { return storage->device(); }
  /// A contiguous copy on the device; itself if it is there already. Waits for the kernels that
  /// compute it.
  Array to(Device device) const;
  Array on_host() const { return to(Device::cpu()); }
  /// For the host; kInternal if the memory is that of another device.
  void* raw() const { return storage->data() + offset * item_size(dtype); }
  /// The address on its device.
  void* address() const { return storage->address() + offset * item_size(dtype); }
  /// The same bytes where they were first, which may be at any address.
  const void* source() const { return storage->source() + offset * item_size(dtype); }
  template <class T>
  T* data() const {
    return static_cast<T*>(raw());
  }
  /// Element `flat` in row-major order, as a double or an int64; for arrays on the host.
  double number(int64_t flat = 0) const;
  std::complex<double> complex_number(int64_t flat = 0) const;  ///< real numbers widen
  int64_t integer(int64_t flat = 0) const;
  Array cast(DType to) const;  ///< contiguous copy in another type; the same if it has it already
};
Dims contiguous_strides(std::span<const int64_t> shape);
/// NumPy-like printing, long axes abbreviated.
std::string text(const Array& array);

class Tensor {
 public:
  Tensor() = default;  ///< undefined: an absent optional operand
  explicit Tensor(Array array);
  Tensor(TensorType type, std::shared_ptr<const Content> content);
  /// The same with a type that several tensors share.
  Tensor(std::shared_ptr<const TensorType> type, std::shared_ptr<const Content> content);
  /// 0-D tensors that promote weakly, from a number.
  static Tensor number(double value);
  static Tensor number(int64_t value);
  static Tensor number(std::complex<double> value);
  static Tensor boolean(bool value);

  bool defined() const { return cell_ != nullptr; }
  explicit operator bool() const { return defined(); }
  const TensorType& type() const;
  DType dtype() const { return type().dtype; }
  const Shape& shape() const { return type().shape; }
  int64_t ndim() const { return static_cast<int64_t>(shape().size()); }
  const Dim& dim(int64_t axis) const;  ///< negative axes count from the end

  /// The current value (a view is brought up to date with its base first).
  const std::shared_ptr<const Content>& content() const;
  /// The concrete value; throws kUsage if the tensor is traced.
  const Array& array() const;
  bool is_concrete() const { return concrete() != nullptr; }
  /// The concrete value; null if the tensor is traced.
  const Array* concrete() const { return content() ? content()->concrete() : nullptr; }

  /// The tape's record of how this value came about (autograd/); null if there is none.
  const std::shared_ptr<Content>& record() const;
  void set_record(std::shared_ptr<Content> record);
  bool requires_grad() const { return record() != nullptr; }

  /// Number of in-place writes that this cell has seen.
  int64_t version() const;
  bool is_same_cell(const Tensor& other) const { return cell_ == other.cell_; }
  /// A new cell with the same value and no view relation.
  Tensor fresh_cell() const;

  /// Makes this cell a view of `base`: `read` recomputes its value from the base's and `write`
  /// returns the base's new value for a new value of the view.
  using ReadView = std::function<Tensor(const Tensor& base)>;
  using WriteView = std::function<Tensor(const Tensor& base, const Tensor& value)>;
  void set_view(const Tensor& base, ReadView read, WriteView write);
  bool is_view() const;
  /// The same for all tensors that see in-place writes to this one: the cell, of a view that of its
  /// base. Only for comparisons.
  const void* root() const;
  /// In-place write: this cell, every cell it views and every view of those see `value`.
  /// Shape and dtype must be those of the cell.
  void assign(const Tensor& value) const;

 private:
  struct Cell;
  void refresh() const;
  std::shared_ptr<Cell> cell_;
};

using Tensors = std::vector<Tensor>;

}  // namespace paddle
