#pragma once
// Between the public interface and the engine: what the public handles hold, and the translation of
// errors. The engine's types are paddle::X, the public ones paddle::v0::X.

#include <new>

#include "base/error.h"
#include "paddle/array.h"
#include "paddle/error.h"
#include "paddle/ops.h"
#include "tensor/tensor.h"

namespace paddle::v0 {

struct Array::Impl {
  paddle::Array array;  ///< contiguous, of a type that the public DType has
};

struct Tensor::Impl {
  paddle::Tensor tensor;  ///< defined
};

struct Access {
  static const paddle::Array& engine(const Array& array);
  static Array handle(paddle::Array array);
  /// Undefined for an undefined handle.
  static paddle::Tensor engine(const Tensor& tensor);
  static Tensor handle(paddle::Tensor tensor);
};

paddle::DType engine_dtype(DType dtype);
/// The type that holds the values of `dtype`: itself, int8 or uint8 for narrower integers, float32
/// for narrower floats. ModelError for strings.
DType public_dtype(paddle::DType dtype, const std::string& what);

/// Throws the public form of an engine error.
[[noreturn]] void rethrow(const paddle::Error& error);

/// Calls `body`; errors of the engine leave as public ones.
template <class Body>
decltype(auto) translated(Body&& body) {
  try {
    return body();
  } catch (const paddle::Error& error) {
    rethrow(error);
  } catch (const std::bad_alloc&) {
    throw DeviceError(ErrorCode::kDevice, "out of memory");
  }
}

}  // namespace paddle::v0
