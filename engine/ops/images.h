#pragma once
// What the schema's `images` says of an operation, by position.

#include <optional>
#include <vector>

#include "ops/op.h"

namespace paddle {

/// Convolutions of so many channels move their images to channels last; where one does, those with
/// some do as well: they are what the network begins with. Volumes always move with some.
constexpr int64_t kManyChannels = 32, kSomeChannels = 8;

/// Operands, results and dims in attributes that lie as `data_format` says; images come one after
/// the other along their first dim in every format.
struct Images {
  int format = -1;  ///< the attribute `data_format`
  std::vector<size_t> operands, results, attrs;
};

/// None for an operation without images.
std::optional<Images> images_of(const Op& op);

}  // namespace paddle
