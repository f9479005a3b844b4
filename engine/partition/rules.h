#pragma once
// Rules of operations for the partition pass: which dims of the operands and results of one
// operation correspond. A factor is a set of corresponding dims, such as the rows of x and of the
// result in a matrix product. A factor that a result lacks is reduced in it: if it is split over a
// mesh axis, each rank has a part of that result, and the parts are combined.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace paddle::partition {

/// A dim of which the operation needs all elements on each rank.
inline constexpr int kWhole = -1;

/// How parts of a result are combined.
enum class Combine : uint8_t { kSum, kMax, kMin };

struct Rule {
  int factors = 0;
  std::vector<std::vector<int>> operands, results;  ///< per dim: a factor, or kWhole
  Combine combine = Combine::kSum;
  /// The operands may be placed in any way; the parts of the result are combined over all axes of
  /// the mesh that split one of them.
  bool any_parts = false;
  /// The result has the elements of operand 0 in the same order, in another shape; dims correspond
  /// as far as they can be aligned, and `operands` and `results` are empty.
  bool reshapes = false;

  /// Starts with all dims whole.
  explicit Rule(const ir::Operation& operation);
  int add() { return factors++; }
};

using RuleFn = std::function<std::optional<Rule>(const ir::Operation& operation)>;

/// The rule of an operation with constant dims; nullopt if it has none: then it runs on whole
/// operands on each rank.
std::optional<Rule> find_rule(const ir::Operation& operation);
/// Adds or replaces the rule of the operation with this name, for operations of plug-ins.
void register_rule(std::string_view operation, RuleFn rule);

/// False for an operand of a random operation that only says how large the result is.
bool reads_elements(const ir::Operation& operation, size_t operand);
/// The size of dim `d`; -1 if it is known only at run time.
int64_t size_of(const ir::Value& value, size_t d);
/// An attribute by name.
const AttrValue& attribute(const ir::Operation& operation, std::string_view name);
/// The number of dims of a value.
size_t rank(const ir::Value* value);
/// The axis that the attribute `name` states, counted from 0.
size_t axis_of(const ir::Operation& operation, std::string_view name, size_t of_rank);
/// The axis of the channels, as the attribute data_format states.
size_t channel_axis(const ir::Operation& operation, size_t of_rank);

namespace detail {
/// Rules by operation, for `find_rule`.
std::optional<Rule> find_basic_rule(const ir::Operation& operation);
std::optional<Rule> find_network_rule(const ir::Operation& operation);
}  // namespace detail

}  // namespace paddle::partition
