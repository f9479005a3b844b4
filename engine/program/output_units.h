#pragma once
// In which units the outputs of a model are: those of the field of the data that the loss compares
// them with. What the loss does with a value tells: a prediction `p` of a field `y` (`y - p`), a
// slice of it, a median or mean of such values, a standard deviation (`(y - p) / s`), a variance.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/module.h"

namespace paddle::program {

/// The unit of a number, for a field y that is scaled by y' = (y - shift) * factor.
enum class UnitKind {
  kValue,          ///< a value of y: y' / factor + shift
  kDifference,     ///< a distance, such as a standard deviation: d' / factor
  kVariance,       ///< v' / factor²
  kLogDifference,  ///< the logarithm of a distance
  kLogVariance,
};
/// "value", "difference", "variance", "log_difference", "log_variance".
const char* name_of(UnitKind kind);

struct OutputUnit {
  std::string output, field;
  UnitKind kind = UnitKind::kValue;
  int64_t at = -1;  ///< the place on the output's last axis; -1: all of them
  /// On the field's last axis; -1: the only column, or that of the same place.
  int64_t column = -1;
};

/// Two values of a trace that a loss compares: a field of the data and a value of the model.
struct Comparison {
  std::string field;
  const ir::Value* label = nullptr;  ///< the field, or a slice of it
  const ir::Value* with = nullptr;
};

/// The units of the outputs, by name, as far as the comparisons and the operations tell.
std::vector<OutputUnit> output_units(
    const ir::Function& function, const std::vector<Comparison>& comparisons,
    const std::vector<std::pair<std::string, const ir::Value*>>& outputs);

/// The columns that a value takes of another one's last axis, seen through operations that keep its
/// numbers. Empty: all of them.
struct ColumnView {
  const ir::Value* base = nullptr;
  std::vector<int64_t> columns = {};
};
ColumnView column_view(const ir::Value* value);

}  // namespace paddle::program
