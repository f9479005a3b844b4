#pragma once
// How the loss of a batch is made of terms of its samples: their sum, or their sum over a divisor.
// Gradient accumulation asks, to count each micro-batch by its part of the whole batch's divisor,
// and validation, to sum up batches of any size. The form is proved from the traced function, or it
// is unknown.

#include <string>

#include "ir/module.h"

namespace paddle::train {

/// The loss of a batch is N / D + R. N is a sum over samples of values that depend on one sample
/// each, R depends on no data.
struct LossForm {
  enum class Kind {
    kSum,       ///< D is 1 and R is 0
    kMean,      ///< D is the number of samples times something that is the same for all batches
    kWeighted,  ///< D is `divisor`
    kUnknown,
  };
  Kind kind = Kind::kUnknown;
  /// 0-D, computed from the data only. The divisor of a batch.
  const ir::Value* divisor = nullptr;
  /// The divisor of a batch is the sum of those of its parts. Else it must be computed for the
  /// whole.
  bool additive = true;
  /// The loss of a batch whose divisor is 0 is taken as R, where N / D would not be a number.
  bool guarded = false;
  std::string reason;  ///< of kUnknown, for messages
  std::string place;   ///< in the model's or config's text, of the operation that it begins with
};

/// The form of a value of a traced function. The samples of a batch are along the first axes of the
/// function's inputs of kind kValue.
LossForm loss_form(const ir::Function& function, const ir::Value& loss);

}  // namespace paddle::train
