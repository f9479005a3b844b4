#pragma once
// Values of an ONNX graph: tensors of either interpreter, strings, sequences, optionals and maps.
// An integer vector derived from shapes is kept as dims, so that shape arithmetic stays known while
// sizes are symbolic.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/onnx/model.h"
#include "tensor/tensor.h"

namespace paddle::onnx {

/// Thrown while tracing if an operator needs the contents of a tensor that only a run provides.
class DataDependentError : public Error {
 public:
  using Error::Error;
};

struct StringArray {
  Dims shape;
  std::vector<std::string> items;
};

class Value {
 public:
  enum class Kind : uint8_t { kNone, kTensor, kStrings, kSequence, kOptional, kMap };
  using List = std::vector<Value>;

  Value() = default;
  Value(Tensor tensor);  // NOLINT: a tensor is a value
  /// Integers `dims` as a 1-D or (`scalar`) 0-D tensor.
  static Value of_dims(Shape dims, bool scalar, DType dtype = DType::kI64);
  static Value of_strings(Dims shape, std::vector<std::string> items);
  static Value sequence(List elements);
  static Value optional(std::optional<Value> element);
  /// `keys` is a vector of strings or int64, `values` a vector of the same length.
  static Value map(Value keys, Value values);
  /// From the contents of a file.
  static Value of(const formats::onnx::ValueData& data);
  static Value of(const formats::onnx::TensorData& data);

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_tensor() const { return kind_ == Kind::kTensor; }
  /// kModel if it is not a tensor.
  const Tensor& tensor() const;
  const StringArray& strings() const;
  const List& elements() const;  ///< of a sequence; zero or one element of an optional

  const Value& keys() const;        ///< of a map
  const Value& map_values() const;  ///< of a map

  /// Integers of a 0-D or 1-D tensor with at most 64 elements, if known while tracing.
  std::optional<Shape> dims() const;
  bool is_scalar() const { return shape().empty(); }
  DType dtype() const;
  Shape shape() const;
  /// True if it contains no symbol.
  bool is_concrete() const;
  std::string text() const;

 private:
  Kind kind_ = Kind::kNone;
  mutable Tensor tensor_;
  std::optional<Shape> dims_;  ///< with `scalar_` and `dtype_`: a tensor that is built on demand
  bool scalar_ = false;
  DType dtype_ = DType::kI64;
  std::shared_ptr<const StringArray> strings_;
  std::shared_ptr<const List> elements_;
};

using Values = std::vector<Value>;

/// Memory use as far as it is static.
int64_t memory_bytes(const Value& value);

}  // namespace paddle::onnx
