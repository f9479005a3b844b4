#pragma once
// The transforms by the names that configs use: each with its documentation, its keys and what
// reads their values. The schema of `data.transforms` and `data.augment` follows from them.

#include <functional>
#include <string>

#include "base/registry.h"
#include "config/schema.h"
#include "data/transforms.h"

namespace paddle::data {

struct TransformInfo {
  std::string name = {};
  std::string doc = {};
  config::Schema keys = {};  ///< besides `fields`
  /// The options that the values of the keys state, which are checked and complete. One that is
  /// registered at run time sets `own`.
  std::function<TransformOptions(const config::Section&)> read = {};
};

/// All transforms; more may be added while the program runs.
Registry<TransformInfo>& transform_registry();

}  // namespace paddle::data
