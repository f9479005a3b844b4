#pragma once
// Values of the model language while a body runs: numbers, text, lists, tensors, dims and
// references to what can be called.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lang/eval/host.h"
#include "lang/syntax/program.h"
#include "tensor/tensor.h"

namespace paddle {
struct Op;
}
namespace paddle::distribution {
struct Kind;
class Distribution;
class Transform;
}  // namespace paddle::distribution

namespace paddle::lang {

class Value;
using ValueList = std::vector<Value>;
using NamedValues = std::vector<std::pair<std::string, Value>>;

/// A function that the host adds to the language (`grad`, a model in a training step).
using HostFunction = std::function<Value(std::vector<Value> positional, NamedValues named,
                                         const SourcePosition& where)>;

/// A reference to an operation, block, built-in or host function.
struct Callable {
  std::string name;
  const Op* op = nullptr;
  const Block* block = nullptr;
  const HostFunction* host = nullptr;
  bool operator==(const Callable& other) const {
    return op == other.op && block == other.block && host == other.host && name == other.name;
  }
};

using DistributionPtr = std::shared_ptr<const distribution::Distribution>;
using TransformPtr = std::shared_ptr<const distribution::Transform>;

/// The source of a random tensor: `normal(mean, std)` is a tensor and knows its distribution.
struct DrawnFrom {
  const distribution::Kind* kind;
  Tensors parameters;
  std::optional<int64_t> trials;  ///< where their number is known
};

class Value {
 public:
  struct None {};
  struct List {
    std::shared_ptr<ValueList> items;
  };
  struct Tuple {
    std::shared_ptr<const ValueList> items;
  };
  struct Map {
    std::shared_ptr<const NamedValues> entries;
  };

  Value() = default;
  Value(bool value) : data_(value) {}
  Value(int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(std::string value) : data_(std::move(value)) {}
  Value(const char* value) : data_(std::string(value)) {}
  Value(Tensor value) : data_(std::move(value)) {}
  /// A constant dim is a number.
  Value(const Dim& dim);
  Value(Callable value) : data_(std::move(value)) {}
  Value(DistributionPtr value) : data_(std::move(value)) {}
  Value(TransformPtr value) : data_(std::move(value)) {}
  Value(Initializer value) : data_(std::make_shared<const Initializer>(std::move(value))) {}
  static Value list(ValueList items);
  static Value tuple(ValueList items);
  static Value map(NamedValues entries);

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data_);
  }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&data_);
  }
  bool is_none() const { return is<None>(); }
  bool is_tensor() const { return is<Tensor>(); }
  bool is_dim() const { return is<Dim>(); }
  bool is_integer() const { return is<int64_t>() || is<bool>(); }
  bool is_number() const { return is_integer() || is<double>(); }
  bool is_scalar() const { return is_number() || is_dim(); }
  const Tensor& tensor() const { return std::get<Tensor>(data_); }
  int64_t integer() const { return is<bool>() ? std::get<bool>(data_) : std::get<int64_t>(data_); }
  double number() const {
    return is<double>() ? std::get<double>(data_) : static_cast<double>(integer());
  }
  const Initializer* initializer() const;
  /// The value that `state(…)` gave: a tensor that knows its slot.
  static Value of_state(Tensor value, std::string path);
  /// The path of its slot, or null.
  const std::string* state_path() const { return state_.get(); }
  /// A drawn tensor and what it was drawn from (null for all other values).
  static Value drawn(Tensor value, DrawnFrom from);
  const DrawnFrom* drawn_from() const { return drawn_from_.get(); }
  /// The same kind of value around another tensor.
  Value with_tensor(Tensor tensor) const {
    Value out(std::move(tensor));
    out.state_ = state_;
    return out;
  }
  /// The items of a list or tuple, or null.
  const ValueList* items() const;
  ValueList* mutable_items() const;  ///< of a list only

  /// "a list", "the number 3", "a tensor float32[2, 3]": for messages.
  std::string describe() const;

 private:
  std::variant<None, bool, int64_t, double, std::string, Tensor, Dim, List, Tuple, Map, Callable,
               std::shared_ptr<const Initializer>, DistributionPtr, TransformPtr>
      data_;
  std::shared_ptr<const std::string> state_;
  std::shared_ptr<const DrawnFrom> drawn_from_;
};

/// Whether a list, tuple or tensor holds a tensor, at any depth (bounded).
bool holds_tensor(const Value& value, int depth = 0);
/// `==` of values that are neither tensors nor undecided dims; kConfig for what cannot be compared.
bool same_value(const Value& a, const Value& b);
/// True, false, or kConfig for a dim of which it is not known. Not for tensors.
bool truth(const Value& value);

/// Bounds the work of a walk over lists that may share their parts.
class WalkBudget {
 public:
  void take() {
    if (--left_ < 0) fail(ErrorCode::kConfig, "lists of more than a million values");
  }

 private:
  int64_t left_ = 1'000'000;
};

/// Longest list.
inline constexpr size_t kMaxListItems = 1'000'000;
/// Loop iterations and operations of one trace.
inline constexpr int64_t kMaxTraceSteps = 1'000'000;

}  // namespace paddle::lang
