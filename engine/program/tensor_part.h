#pragma once
// The part of a tensor that one of several processes writes.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::program {

struct TensorPart {
  /// `count` elements from number `in_part` on are those from number `in_whole` on of the tensor.
  struct Run {
    int64_t in_whole = 0, in_part = 0, count = 0;
  };
  Array values;  ///< contiguous, on the host
  std::vector<Run> runs;
};
/// All of a tensor.
inline TensorPart whole_part(const Array& array) {
  return {array.on_host().contiguous(), {{0, 0, array.size()}}};
}
/// The part that this process writes of a parameter or state of the store; nullopt: none.
using PartOf = std::function<std::optional<TensorPart>(const std::string& name)>;

}  // namespace paddle::program
