#include "onnx/graph/value.h"

#include "base/limits.h"
#include "ops/core/operators.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {

Value::Value(Tensor tensor)
    : kind_(tensor ? Kind::kTensor : Kind::kNone), tensor_(std::move(tensor)) {}

Value Value::of_dims(Shape dims, bool scalar, DType dtype) {
  Value out;
  out.kind_ = Kind::kTensor;
  out.dims_ = std::move(dims);
  out.scalar_ = scalar;
  out.dtype_ = dtype;
  return out;
}

Value Value::of_strings(Dims shape, std::vector<std::string> items) {
  if (static_cast<int64_t>(items.size() * sizeof(std::string)) > limits().memory / 2)
    fail(ErrorCode::kModel, items.size(), " strings take more than half of the memory");
  Value out;
  out.kind_ = Kind::kStrings;
  out.strings_ = std::make_shared<StringArray>(StringArray{std::move(shape), std::move(items)});
  return out;
}

Value Value::sequence(List elements) {
  Value out;
  out.kind_ = Kind::kSequence;
  out.elements_ = std::make_shared<List>(std::move(elements));
  return out;
}

Value Value::optional(std::optional<Value> element) {
  Value out;
  out.kind_ = Kind::kOptional;
  List list;
  if (element) list.push_back(std::move(*element));
  out.elements_ = std::make_shared<List>(std::move(list));
  return out;
}

Value Value::map(Value keys, Value values) {
  Value out;
  out.kind_ = Kind::kMap;
  out.elements_ = std::make_shared<List>(List{std::move(keys), std::move(values)});
  return out;
}

Value Value::of(const formats::onnx::TensorData& data) {
  if (data.dtype == DType::kString) return of_strings(data.shape, data.strings);
  return Value(Tensor(data.array));
}

Value Value::of(const formats::onnx::ValueData& data) {
  using Kind = formats::onnx::ValueType::Kind;
  if (data.kind == Kind::kTensor) return of(data.tensor);
  List list;
  for (const auto& e : data.elements) list.push_back(of(e));
  if (data.kind == Kind::kSequence) return sequence(std::move(list));
  return list.empty() ? optional(std::nullopt) : optional(list[0]);
}

const Tensor& Value::tensor() const {
  if (kind_ != Kind::kTensor) fail(ErrorCode::kModel, "expected a tensor, not ", text());
  if (!tensor_ && dims_) {
    if (is_constant(*dims_)) {
      std::vector<int64_t> numbers = concrete(*dims_);
      const Dims shape = scalar_ ? Dims{} : Dims{static_cast<int64_t>(numbers.size())};
      tensor_ = Tensor(Array::from(numbers, shape).cast(dtype_));
    } else if (scalar_) {
      tensor_ = dim_value((*dims_)[0], dtype_);
    } else {
      Tensors parts;
      for (const Dim& d : *dims_) parts.push_back(dim_value(d, dtype_));
      tensor_ = ops::stack(parts, 0);
    }
  }
  return tensor_;
}

const StringArray& Value::strings() const {
  if (kind_ != Kind::kStrings) fail(ErrorCode::kModel, "expected strings, not ", text());
  return *strings_;
}

const Value::List& Value::elements() const {
  if (!elements_ || kind_ == Kind::kMap)
    fail(ErrorCode::kModel, "expected a sequence or optional, not ", text());
  return *elements_;
}

const Value& Value::keys() const {
  if (kind_ != Kind::kMap) fail(ErrorCode::kModel, "expected a map, not ", text());
  return (*elements_)[0];
}

const Value& Value::map_values() const {
  keys();
  return (*elements_)[1];
}

std::optional<Shape> Value::dims() const {
  if (dims_) return dims_;
  if (kind_ != Kind::kTensor || !tensor_.is_concrete() || !is_integer(tensor_.dtype()) ||
      !info(tensor_.dtype()).has_kernels || tensor_.ndim() > 1)
    return std::nullopt;
  const Array& a = tensor_.array();
  if (a.size() > 64) return std::nullopt;
  Shape out;
  for (int64_t i = 0; i < a.size(); ++i) out.push_back(Dim(a.integer(i)));
  return out;
}

DType Value::dtype() const {
  if (dims_) return dtype_;
  return kind_ == Kind::kStrings ? DType::kString : tensor().dtype();
}

Shape Value::shape() const {
  if (dims_) return scalar_ ? Shape{} : Shape{Dim(static_cast<int64_t>(dims_->size()))};
  return kind_ == Kind::kStrings ? to_shape(strings_->shape) : tensor().shape();
}

bool Value::is_concrete() const {
  if (dims_) return is_constant(*dims_);
  if (kind_ == Kind::kTensor) return tensor_.is_concrete();
  if (elements_)
    for (const Value& v : *elements_)
      if (!v.is_concrete()) return false;
  return true;
}

int64_t memory_bytes(const Value& value) {
  int64_t bytes = sizeof(Value);
  switch (value.kind()) {
    case Value::Kind::kTensor:
      if (const Shape shape = value.shape(); is_constant(shape))
        bytes +=
            storage_bytes(value.dtype(), element_count(std::span<const int64_t>(concrete(shape))));
      break;
    case Value::Kind::kStrings:
      for (const std::string& s : value.strings().items)
        bytes += static_cast<int64_t>(sizeof s + s.size());
      break;
    case Value::Kind::kMap:
      bytes += memory_bytes(value.keys()) + memory_bytes(value.map_values());
      break;
    case Value::Kind::kSequence:
    case Value::Kind::kOptional:
      for (const Value& v : value.elements()) bytes += memory_bytes(v);
      break;
    case Value::Kind::kNone:
      break;
  }
  return bytes;
}

std::string Value::text() const {
  switch (kind_) {
    case Kind::kTensor:
      return dims_ ? str(paddle::text(dtype_), paddle::text(shape())) : tensor_.type().text();
    case Kind::kStrings:
      return str("string", strings_->shape);
    case Kind::kSequence:
      return str("a sequence of ", elements_->size(), " values");
    case Kind::kOptional:
      return elements_->empty() ? "an empty optional" : "optional " + (*elements_)[0].text();
    case Kind::kMap:
      return "a map of " + (*elements_)[0].text() + " to " + (*elements_)[1].text();
    case Kind::kNone:
      break;
  }
  return "nothing";
}

}  // namespace paddle::onnx
