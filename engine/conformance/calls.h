#pragma once
// Calls of an operation that are made from its samples: other sizes, dtypes and values.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "inspect/op_call.h"

namespace paddle::conformance {

/// The elements of floating operands.
enum class Values : uint8_t {
  kDrawn,
  kWhole,  ///< whole numbers, many of them equal
  kNan,    ///< some of them NaN
};

struct Call {
  std::string text;  ///< the arguments, as on a command line
  bool strided = false;
  Values values = Values::kDrawn;
};
/// Changes an operand to the values of a call.
Array with_values(const Array& array, Values values);

/// How many calls are made, and the seed of the sizes that are drawn.
struct Extent {
  bool quick = false;
  uint64_t seed = 1;
};

/// The samples of an operation as they are, and with sizes of 1, 0, odd and random ones, in every
/// floating dtype that it takes; with whole numbers and NaN in some. Equal sizes of a sample stay
/// equal. Some may not fit the operation.
std::vector<Call> calls_of(const Op& op, const Extent& extent);
inspect::NamedCall parse(const Op& op, const Call& call);

/// The text of a call with other sizes: `size(old, n)` for the n-th distinct one. Sizes of 1 stay.
std::string resized(const std::string& text,
                    const std::function<int64_t(int64_t old, size_t n)>& size);

}  // namespace paddle::conformance
