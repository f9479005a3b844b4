#pragma once
// The arguments of an operation's hand-written rules: InferContext for shape and dtype inference,
// VjpContext for gradients, CallContext for decompositions. Operands are indexed as declared; use
// `list(i)` for one that is a list.

#include <map>
#include <string>
#include <vector>

#include "ops/core/op.h"
#include "tensor/interpreter.h"

namespace paddle {

/// Maps declared operands to flat positions.
class OperandMap {
 public:
  OperandMap(const Op& op, const Attrs& attrs);
  size_t begin(size_t declared) const { return starts_.empty() ? declared : starts_[declared]; }
  size_t end(size_t declared) const { return begin(declared + 1); }
  size_t flat_count() const { return flat_count_; }

 private:
  std::vector<size_t> starts_;  ///< empty if no operand is a list
  size_t flat_count_ = 0;
};

class InferContext {
 public:
  InferContext(const Op& op, const Attrs& attrs, const Tensors& operands);

  const Op& op() const { return op_; }
  const Attrs& attrs() const { return attrs_; }
  const Tensors& operands() const { return operands_; }
  template <class Typed>
  Typed attrs_as() const {
    return Typed(attrs_);
  }
  bool has(size_t declared) const;
  /// Type of a declared operand (of the first element, for a list).
  const TensorType& type(size_t declared) const;
  const Shape& shape(size_t declared) const { return type(declared).shape; }
  DType dtype(size_t declared) const { return type(declared).dtype; }
  int64_t rank(size_t declared) const { return static_cast<int64_t>(shape(declared).size()); }
  size_t list_size(size_t declared) const;
  const TensorType& list_type(size_t declared, size_t i) const;

  void result(TensorType type) { results_.push_back(std::move(type)); }
  void result(DType dtype, Shape shape) { results_.push_back({dtype, std::move(shape)}); }

  /// Throws kUsage with the operation's name as prefix.
  template <class... Parts>
  [[noreturn, gnu::always_inline]] void reject(const Parts&... parts) const {
    fail(ErrorCode::kUsage, op_.name(), ": ", parts...);
  }
  template <class... Parts>
  [[gnu::always_inline]] void check(bool condition, const Parts&... parts) const {
    if (!condition) reject(parts...);
  }
  /// Requires a == b: kUsage if they differ, a constraint that is checked when dims are bound if
  /// that is unknown. Returns the more specific of the two.
  Dim require_equal(const Dim& a, const Dim& b, const std::string& what);
  /// The axis counted from 0; kUsage if out of range for `rank`.
  int64_t axis(int64_t axis, int64_t rank) const;
  /// Axes counted from 0, sorted; kUsage for duplicates. An empty list means all.
  std::vector<int64_t> axes(const std::vector<int64_t>& axes, int64_t rank) const;
  /// The broadcast shape; kUsage if the shapes do not broadcast.
  Shape broadcast(const Shape& a, const Shape& b);
  /// A new dim whose value is known only after the operation has run.
  Dim run_time_dim();
  void require_integer(size_t declared) const;

  std::vector<TensorType>& results() { return results_; }
  std::vector<DimConstraint>& constraints() { return constraints_; }

 private:
  const Op& op_;
  const Attrs& attrs_;
  const Tensors& operands_;
  OperandMap map_;
  std::vector<TensorType> results_;
  std::vector<DimConstraint> constraints_;
};

/// Operands, results and cotangents of a call to differentiate. The rule returns one gradient per
/// flat operand; undefined means zero or not differentiable.
class VjpContext {
 public:
  VjpContext(const Op& op, const Attrs& attrs, const Tensors& operands, const Tensors& results,
             const Tensors& cotangents, const std::vector<bool>& needed)
      : op_(op),
        attrs_(attrs),
        operands_(operands),
        results_(results),
        cotangents_(cotangents),
        needed_(needed),
        map_(op, attrs) {}

  const Op& op() const { return op_; }
  const Attrs& attrs() const { return attrs_; }
  template <class Typed>
  Typed attrs_as() const {
    return Typed(attrs_);
  }
  /// A declared operand (the first element of a list). A complex one is conjugated, which is what
  /// the gradient of a holomorphic function needs: g * conj(f'(x)).
  const Tensor& operand(size_t declared) const;
  Tensors list(size_t declared) const;
  /// A result, conjugated in the same way.
  const Tensor& result(size_t i) const;
  size_t result_count() const { return results_.size(); }
  /// The operand or result itself, for functions that are not holomorphic.
  const Tensor& plain_operand(size_t declared) const;
  const Tensor& plain_result(size_t i) const { return results_[i]; }
  /// Undefined if the output does not depend on result i.
  const Tensor& cotangent(size_t i = 0) const { return cotangents_[i]; }
  /// The same, with zeros for undefined.
  Tensor cotangent_or_zeros(size_t i) const;
  bool needs(size_t declared) const;
  bool needs_flat(size_t flat) const { return needed_[flat]; }
  const OperandMap& map() const { return map_; }
  /// Undefined gradients for all flat operands, to be set at `map().begin(declared)`.
  Tensors gradients() const { return Tensors(operands_.size()); }

 private:
  const Op& op_;
  const Attrs& attrs_;
  const Tensors& operands_;
  const Tensors& results_;
  const Tensors& cotangents_;
  const std::vector<bool>& needed_;
  OperandMap map_;
  /// Conjugates of complex operands and results that were asked for, by position.
  mutable std::map<size_t, Tensor> conjugates_;

  const Tensor& conjugated(const Tensor& t, size_t position) const;
};

class CallContext {
 public:
  CallContext(const Op& op, const Attrs& attrs, const Tensors& operands,
              const std::vector<TensorType>& results)
      : op_(op), attrs_(attrs), operands_(operands), results_(results), map_(op, attrs) {}
  const Op& op() const { return op_; }
  const Attrs& attrs() const { return attrs_; }
  template <class Typed>
  Typed attrs_as() const {
    return Typed(attrs_);
  }
  const Tensor& operand(size_t declared) const;
  bool has(size_t declared) const { return operand(declared).defined(); }
  Tensors list(size_t declared) const;
  const TensorType& result_type(size_t i) const { return results_[i]; }
  size_t result_count() const { return results_.size(); }

 private:
  const Op& op_;
  const Attrs& attrs_;
  const Tensors& operands_;
  const std::vector<TensorType>& results_;
  OperandMap map_;
};

}  // namespace paddle
