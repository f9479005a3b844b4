#pragma once
// Operations by name on tensors, computed at once, and their gradients.
//
//   paddle::Tensor w = paddle::variable(weights);
//   paddle::Tensor loss = paddle::call("mean", {paddle::call("square", {w})});
//   paddle::Tensor slope = paddle::gradients({loss}, {w})[0];     // 2 * w / size
//   loss.backward();                                              // or added to w.gradient()
//
// `paddle op list` names all operations and `paddle op show NAME` describes their arguments.
// Threads may compute side by side on tensors of their own; share a Tensor between threads only
// through the Array that it holds.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "paddle/array.h"
#include "paddle/config.h"

namespace paddle::v0 {

/// A value and, if it depends on a variable, the record of how it was computed. Copies are cheap.
class PADDLE_API Tensor {
 public:
  /// Undefined: an optional result that the operation did not compute.
  Tensor();
  Tensor(const Array& value);  // NOLINT: an array is a constant
  ~Tensor();
  Tensor(const Tensor&) noexcept;
  Tensor(Tensor&&) noexcept;
  Tensor& operator=(const Tensor&) noexcept;
  Tensor& operator=(Tensor&&) noexcept;

  bool defined() const noexcept;
  bool requires_gradient() const;
  DType dtype() const;
  std::vector<int64_t> shape() const;
  /// A row-major copy of the value; UsageError if undefined.
  Array array() const;

  /// Adds to each variable that this tensor depends on its gradient of sum(this), or of
  /// sum(this * weight). What is added carries no record. UsageError if the tensor is undefined
  /// or depends on no variable, or `weight` has another type.
  void backward(const Tensor& weight = Tensor()) const;
  /// True for what `variable` returns.
  bool is_variable() const;
  /// The gradient of a variable; undefined if there is none. UsageError for other tensors.
  Tensor gradient() const;
  /// Removes the gradient of a variable.
  void clear_gradient() const;
  /// Gives a variable another value of the same type, as an optimizer does; tensors that were
  /// computed from it keep theirs.
  void set_value(const Array& value) const;

 private:
  struct Impl;
  friend struct Access;
  std::shared_ptr<Impl> impl_;
};

/// An argument of an operation: a tensor, a list of them, or the value of an attribute. A dtype may
/// be passed as a DType or by name.
class PADDLE_API Argument {
 public:
  using Value =
      std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                   std::vector<std::string>, Tensor, std::vector<Tensor>>;
  Argument(bool value) : value_(value) {}                                 // NOLINT
  Argument(int value) : value_(static_cast<int64_t>(value)) {}            // NOLINT
  Argument(int64_t value) : value_(value) {}                              // NOLINT
  Argument(double value) : value_(value) {}                               // NOLINT
  Argument(const char* value) : value_(std::string(value)) {}             // NOLINT
  Argument(std::string value) : value_(std::move(value)) {}               // NOLINT
  Argument(DType value) : value_(std::string(dtype_name(value))) {}       // NOLINT
  Argument(std::vector<int64_t> value) : value_(std::move(value)) {}      // NOLINT
  Argument(std::vector<double> value) : value_(std::move(value)) {}       // NOLINT
  Argument(std::vector<std::string> value) : value_(std::move(value)) {}  // NOLINT
  Argument(const Array& value) : value_(Tensor(value)) {}                 // NOLINT
  Argument(Tensor value) : value_(std::move(value)) {}                    // NOLINT
  Argument(std::vector<Tensor> value) : value_(std::move(value)) {}       // NOLINT
  const Value& value() const { return value_; }

 private:
  Value value_;
};
using Named = std::pair<std::string, Argument>;

/// Runs an operation and returns its first result. Arguments by position, then by name:
///   call("softmax", {x}, {{"axis", -1}})
/// UsageError for unknown operations and arguments that do not fit.
PADDLE_API Tensor call(const std::string& operation, const std::vector<Argument>& arguments,
                       const std::vector<Named>& named = {});
/// The same for operations with several results.
PADDLE_API std::vector<Tensor> call_all(const std::string& operation,
                                        const std::vector<Argument>& arguments,
                                        const std::vector<Named>& named = {});

/// While one lives, calls on this thread keep no record, which saves time and memory.
class PADDLE_API NoGradientScope {
 public:
  NoGradientScope();
  ~NoGradientScope();
  NoGradientScope(const NoGradientScope&) = delete;
  NoGradientScope& operator=(const NoGradientScope&) = delete;

 private:
  bool before_;
};

/// A tensor whose gradient can be asked for; UsageError unless its elements are floats.
PADDLE_API Tensor variable(const Array& value);
/// Gradients of sum(outputs) by each of `inputs`; undefined where an input has no part in them.
/// They carry a record themselves, so that gradients of gradients work. `weights`, if given, are
/// multiplied with the outputs before the sum: one of its shape for each.
PADDLE_API std::vector<Tensor> gradients(const std::vector<Tensor>& outputs,
                                         const std::vector<Tensor>& inputs,
                                         const std::vector<Tensor>& weights = {});

/// Names of all operations.
PADDLE_API std::vector<std::string> operations();
/// The declaration of an operation, "softmax(x, axis=-1)"; UsageError if there is none.
PADDLE_API std::string signature(const std::string& operation);
/// Random operations that this thread calls from here on draw numbers that depend on the seed and
/// on the calls since. Without it, the seed is 0.
PADDLE_API void set_random_seed(uint64_t seed);

}  // namespace paddle::v0
