#pragma once
// Values of an ONNX graph while it is imported or run: tensors (of either interpreter), strings,
// sequences, optionals and maps. An integer vector that came from shapes is kept as dims, so that
// what exporters compute on sizes stays known although sizes are symbols.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/onnx/model.h"
#include "tensor/tensor.h"

namespace paddle::onnx {

/// What stops a trace: an operator needs the value of a tensor that only a run gives.
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
  /// The integers `dims`, a vector or (`scalar`) a 0-D tensor.
  static Value of_dims(Shape dims, bool scalar, DType dtype = DType::kI64);
  static Value of_strings(Dims shape, std::vector<std::string> items);
  static Value sequence(List elements);
  static Value optional(std::optional<Value> element);
  /// Keys (a vector of strings or int64) and as many values (a vector of any kind).
  static Value map(Value keys, Value values);
  /// A value of a file.
  static Value of(const formats::onnx::ValueData& data);
  static Value of(const formats::onnx::TensorData& data);

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_tensor() const { return kind_ == Kind::kTensor; }
  /// kModel if it is no tensor.
  const Tensor& tensor() const;
  const StringArray& strings() const;
  const List& elements() const;  ///< of a sequence, or the one or none of an optional

  const Value& keys() const;        ///< of a map
  const Value& map_values() const;  ///< of a map

  /// Integers of a 0-D or 1-D tensor as far as they are known while tracing; at most 64.
  std::optional<Shape> dims() const;
  bool is_scalar() const { return shape().empty(); }
  DType dtype() const;
  Shape shape() const;
  /// True if no part of it is a symbol.
  bool is_concrete() const;
  std::string text() const;

 private:
  Kind kind_ = Kind::kNone;
  mutable Tensor tensor_;
  std::optional<Shape> dims_;  ///< with `scalar_` and `dtype_` the tensor, until it is asked for
  bool scalar_ = false;
  DType dtype_ = DType::kI64;
  std::shared_ptr<const StringArray> strings_;
  std::shared_ptr<const List> elements_;
};

using Values = std::vector<Value>;

/// Bytes that a value holds as far as its parts are known.
int64_t memory_bytes(const Value& value);

}  // namespace paddle::onnx
