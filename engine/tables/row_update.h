#pragma once
// Updates of rows in place, with the arithmetic of the optimizers' operations on whole parameters.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "optim/update_rule.h"

namespace paddle::tables {

/// Weights that a rule keeps for each weight of a row.
int64_t states_of(optim::RowRule::Kind kind);

/// Scalars of an update.
struct RowScalars {
  double rate = 0;
  double weight_decay = 0;
  double step = 1;  ///< counts updates from 1
  double scale = 1;
  double bound = std::numeric_limits<double>::infinity();
};

/// Further numbers of records, and how they change updates.
struct RowExtras {
  std::optional<std::pair<double, double>> bounds = {};  ///< of weights, after the update
  /// Where the float32 number of a record is that is 0 while only the first `narrow` of its columns
  /// are in use.
  std::optional<size_t> wide_at = {};
  int64_t narrow = 0;
  /// Where Adagrad's sum of squares of the whole row is, a float32 number in place of the states:
  /// w -= rate * g * sqrt(initial / (initial + sum)), and then the mean of the squares is added to
  /// the sum.
  std::optional<size_t> moment_at = {};
  double moment_initial = 0;
};

/// Updates rows of `width` elements of a dtype, float32 or float64, each followed by its states.
/// `gradients` has one for each row.
void update_rows(const optim::RowRule& rule, const RowScalars& scalars, DType dtype, int64_t width,
                 std::span<std::byte* const> rows, const void* gradients,
                 const RowExtras& extras = {});

/// Of the elements, each row after the one before it.
double sum_of_squares(DType dtype, int64_t count, const void* values);

}  // namespace paddle::tables
