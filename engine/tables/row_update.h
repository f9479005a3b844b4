#pragma once
// Updates of rows in place, with the arithmetic of the optimizers' operations on whole parameters.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

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

/// Updates rows of `width` elements of a dtype, float32 or float64, each followed by its states.
/// `gradients` has one for each row.
void update_rows(const optim::RowRule& rule, const RowScalars& scalars, DType dtype, int64_t width,
                 std::span<std::byte* const> rows, const void* gradients);

/// Of the elements, each row after the one before it.
double sum_of_squares(DType dtype, int64_t count, const void* values);

}  // namespace paddle::tables
