#pragma once
// A prediction in mixed precision.

#include <memory>

#include "ir/module.h"

namespace paddle::program {

/// The function with matrix products, convolutions and attention in `low` (bfloat16 or float16) as
/// autocast of training does it; inputs and outputs keep their types.
std::shared_ptr<ir::Function> in_mixed_precision(ir::Function& function, DType low);

}  // namespace paddle::program
