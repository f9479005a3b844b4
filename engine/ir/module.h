#pragma once
// Modules as data: named functions over shared parameters and states. A function is a list of
// operations in SSA form whose values have types with symbolic dims; operations of control flow
// own regions, which may use values of the function around them.

#include <deque>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ops/op.h"
#include "tensor/interpreter.h"

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
};

/// A list of operations with arguments; what it gives back are `results`.
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
  std::string place;     ///< where in the model's text it came from, if known
};

/// What an argument or result of a function stands for.
enum class PortKind : uint8_t {
  kValue,      ///< an input or output, by name
  kParameter,  ///< a parameter of the module (as result: its new version)
  kState,      ///< a state slot of the module (as result: its new version)
  kRandom,     ///< uint64[2]: seed and step
};

struct Port {
  PortKind kind = PortKind::kValue;
  std::string name;
};

class Function {
 public:
  explicit Function(std::string function_name) : name(std::move(function_name)) {}
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  std::string name;
  Region body;
  std::vector<Port> inputs;   ///< one per body argument
  std::vector<Port> outputs;  ///< one per body result
  std::vector<DimConstraint> constraints;

  Value* new_value(TensorType type);
  Value* add_argument(Region& region, TensorType type);
  Value* add_input(Port port, TensorType type);
  Value* add_constant(Array array);
  /// Makes an input the constant `array`, of its type; the inputs after it move up.
  void bind_input(size_t input, Array array);
  /// Appends an operation to a region; result values are made from `types`.
  Operation* append(Region& region, const Op& op, std::vector<Value*> operands, Attrs attrs,
                    const std::vector<TensorType>& types);
  void add_output(Port port, Value* value);
  const std::deque<Value>& values() const { return values_; }
  int value_count() const { return static_cast<int>(values_.size()); }
  void swap(Function& other);
  /// Number of operations, regions included.
  int64_t operation_count() const;

 private:
  std::deque<Value> values_;
  int64_t next_sequence_ = 0;
};

/// A parameter or state slot: its type and, for parameters, how it begins.
struct Slot {
  std::string name;
  TensorType type;
  std::string initializer;  ///< as the model language writes it, such as "xavier_uniform"
  bool trainable = true;
};

class Module {
 public:
  std::string name = "module";
  std::vector<Slot> parameters;
  std::vector<Slot> states;
  std::vector<std::shared_ptr<Function>> functions;

  Function& add_function(std::string function_name);
  Function* find_function(std::string_view function_name) const;
};

/// Calls `visit(operation)` for every operation of a region and its nested ones, in order.
template <class Visit>
void for_each_operation(const Region& region, Visit&& visit) {
  for (const auto& op : region.operations) {
    visit(*op);
    for (const auto& nested : op->regions) for_each_operation(*nested, visit);
  }
}

/// Calls `visit(value)` for every value that an operation reads, in its regions too.
template <class Visit>
void for_each_read(const Operation& operation, Visit&& visit) {
  for (const Value* v : operation.operands)
    if (v) visit(v);
  for (const auto& region : operation.regions) {
    for (const auto& inner : region->operations) for_each_read(*inner, visit);
    for (const Value* v : region->results) visit(v);
  }
}

/// How often each value is read, by operations and as a result; those that nothing reads are not in
/// it.
std::unordered_map<const Value*, int> count_uses(const Function& function);

/// The module's text form; `parse` reads it back to the same module.
std::string print(const Module& module);
std::string print(const Function& function);
/// The text of a module that holds this function alone, with the slots that its ports name.
/// Constants of more elements than `longest` are named without them; such a text does not read
/// back.
std::string print_module(const Function& function, const std::string& module_name,
                         int64_t longest = std::numeric_limits<int64_t>::max());
Module parse(std::string_view text, const std::string& file);
/// Checks types against inference, definitions before uses, ports and regions; throws kModel.
void verify(const Module& module);
void verify(const Function& function);

}  // namespace paddle::ir
