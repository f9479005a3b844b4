#pragma once
// The IR: modules of named functions over shared parameters and states. A function is a list of
// operations in SSA form whose values have types with symbolic dims. Control flow operations own
// regions, which can use values of the enclosing function.

#include <deque>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/placement.h"
#include "ops/core/op.h"
#include "ops/core/target.h"
#include "tensor/interpreter.h"

namespace paddle {
class Kernel;
}

namespace paddle::ir {

struct Operation;
struct Region;
class Function;

struct Value {
  TensorType type;
  Operation* producer = nullptr;  ///< null for arguments and constants
  size_t index = 0;               ///< among the producer's results, or the region's arguments
  int id = 0;                     ///< unique in the function, in order of creation
  std::optional<Array> constant;  ///< set for constants
  std::string name = {};     ///< for readers: of a variable or an ONNX value; need not be unique
  Placement placement = {};  ///< in the function of one rank, which part of the whole it is
};

/// Notes the name and, for a value of the same type, the placement of `from` at `to`, where it has
/// none of its own: `to` takes the place of `from`.
void annotate(Value& to, const Value& from);

/// A list of operations with arguments and results.
struct Region {
  std::vector<Value*> arguments;
  std::list<std::unique_ptr<Operation>> operations;
  std::vector<Value*> results;
};

struct Operation {
  const Op* op = nullptr;
  std::vector<Value*> operands;  ///< flat; null where an optional operand is absent
  Attrs attrs;
  std::vector<Value*> results;
  std::vector<std::unique_ptr<Region>> regions;
  int64_t sequence = 0;  ///< order of creation
  std::string location;  ///< source location in the model, if known
  /// Of a region that a compiler has claimed: what it was compiled to, if its sizes were known.
  std::shared_ptr<const Kernel> kernel = {};
};

/// True for cf.while; other operations with two regions are cf.if.
bool is_loop(const Operation& operation);

/// The role of an argument or result of a function.
enum class PortKind : uint8_t {
  kValue,      ///< an input or output, by name
  kParameter,  ///< a parameter of the module (as a result: its updated value)
  kState,      ///< a state of the module (as a result: its updated value)
  kRandom,     ///< uint64[2]: seed and step
};

struct Port {
  PortKind kind = PortKind::kValue;
  std::string name;
};

class Function {
 public:
  explicit Function(std::string function_name, const TargetInfo& function_target = {})
      : name(std::move(function_name)), target(function_target) {}
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  std::string name;
  Region body;
  std::vector<Port> inputs;   ///< one per body argument
  std::vector<Port> outputs;  ///< one per body result
  std::vector<DimConstraint> constraints;
  /// The function will run there: operations that have no kernel there are traced as their
  /// decomposition. The text form has what differs from the default.
  TargetInfo target;

  Value* new_value(TensorType type);
  Value* add_argument(Region& region, TensorType type);
  Value* add_input(Port port, TensorType type);
  Value* add_constant(Array array);
  /// Replaces an input by a constant of its type; the index of later inputs decreases.
  void bind_input(size_t input, Array array);
  /// Appends an operation to a region and creates its results from `types`.
  Operation* append(Region& region, const Op& op, std::vector<Value*> operands, Attrs attrs,
                    const std::vector<TensorType>& types);
  void add_output(Port port, Value* value);
  const std::deque<Value>& values() const { return values_; }
  std::deque<Value>& values() { return values_; }
  int value_count() const { return static_cast<int>(values_.size()); }
  void swap(Function& other);
  /// Number of operations, regions included.
  int64_t operation_count() const;

 private:
  std::deque<Value> values_;
  int64_t next_sequence_ = 0;
};

/// How long the value of a slot lives.
enum class SlotScope : uint8_t {
  kModel,     ///< with the model, in all its files
  kSequence,  ///< for one sequence; files hold what sequences start with
  kTraining,  ///< while the model is trained: in checkpoints only
};
/// The target in the text form, "target {device = 'mirror', tile_bytes = 1048576}"; "" for the
/// default one and for the CPU of this machine.
std::string text(const TargetInfo& target);
/// "model", "sequence" or "training".
std::string text(SlotScope scope);

/// A parameter or state of a module.
struct Slot {
  std::string name;
  TensorType type;
  std::string initializer;  ///< the first value in the model language, such as "xavier_uniform"
  bool trainable = true;
  SlotScope scope = SlotScope::kModel;
  Placement placement = {};  ///< in a run of several ranks
};

class Module {
 public:
  std::string name = "module";
  std::vector<Slot> parameters;
  std::vector<Slot> states;
  std::vector<std::shared_ptr<Function>> functions;
};

/// Calls `visit(operation)` for every operation of a region and its nested ones, in order.
template <class Visit>
void for_each_operation(const Region& region, Visit&& visit) {
  for (const auto& op : region.operations) {
    visit(*op);
    for (const auto& nested : op->regions) for_each_operation(*nested, visit);
  }
}

/// Calls `visit(value)` for every value that an operation or one in its regions reads.
template <class Visit>
void for_each_read(const Operation& operation, Visit&& visit) {
  for (const Value* v : operation.operands)
    if (v) visit(v);
  for (const auto& region : operation.regions) {
    for (const auto& inner : region->operations) for_each_read(*inner, visit);
    for (const Value* v : region->results) visit(v);
  }
}

/// The number of uses of each value, by operations and as a result. Unused values are absent.
std::unordered_map<const Value*, int> count_uses(const Function& function);

/// The text form of a module, which `parse` reads back to the same module.
std::string print(const Module& module);
std::string print(const Function& function);
/// The text of a module of this function only, with the parameters and states that its ports name.
/// Constants of more than `longest` elements are elided; such a text cannot be parsed again.
std::string print_module(const Function& function, const std::string& module_name,
                         int64_t longest = std::numeric_limits<int64_t>::max());
/// Operations that access files, other ranks or the like are errors, except those with one of the
/// traits `allowed_accesses` (ops/core/access.h).
Module parse(std::string_view text, const std::string& file, uint32_t allowed_accesses = 0);
/// An error of verify() that one operation is the cause of.
class InvalidOperation final : public Error {
 public:
  InvalidOperation(const Error& cause, size_t number) : Error(cause), index(number) {}
  size_t index;  ///< in the order of for_each_operation
};
/// Checks types against shape inference, definitions before uses, ports and regions; kModel.
void verify(const Module& module);
void verify(const Function& function);

}  // namespace paddle::ir
