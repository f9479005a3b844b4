#pragma once
// Which operands, results and attributes of an operation have the layout that its attribute
// `data_format` names (NCHW or NHWC and the like): the schema's `images`, by index.

#include <optional>
#include <vector>

#include "ops/core/op.h"

namespace paddle {

/// The batch is the first axis in every format.
struct DataFormatOperands {
  int format = -1;  ///< the attribute `data_format`
  std::vector<size_t> operands, results;
  std::vector<size_t> attrs;  ///< shapes in attributes
};

/// None for an operation without a data format.
std::optional<DataFormatOperands> data_format_operands(const Op& op);

}  // namespace paddle
