#pragma once
// Where the steps of two runs part, operation by operation: both compute one step from the same
// weights, each in its own layout with simulated ranks, and their whole values are compared.

#include <cstdint>
#include <optional>
#include <string>

#include "train/job/trainer.h"

namespace paddle::train {

/// A value that two runs computed, and how far apart they are.
struct ValueDifference {
  std::string operation, location, type;
  int64_t different = 0, count = 0;  ///< elements
  double largest = 0;                ///< absolute difference
  double scale = 0;                  ///< largest absolute element
};

struct StepComparison {
  int64_t step = 0;
  std::string checkpoint;  ///< whose weights both started from; "": the initial ones
  int64_t values = 0, same_bits = 0;
  std::optional<ValueDifference> first_bits;    ///< in the order of the program
  std::optional<ValueDifference> first_beyond;  ///< beyond the rounding of its type
  std::string parted;  ///< where the programs themselves differ; "": nowhere
};

/// The bound of a difference of rounding, relative to the largest element of a tensor: 1e-10 in
/// float64, 1e-4 in float32, 5e-2 in 16 bits, 0 for integers.
double rounding_bound(DType dtype);

/// Compares the first step after the newest checkpoint of run `a` before `before` (the first step
/// without one). Each run's own config and data count; kModel if `b` is of another model.
StepComparison compare_step(const std::string& a, const std::string& b, int64_t before,
                            TrainObserver& observer);

}  // namespace paddle::train
