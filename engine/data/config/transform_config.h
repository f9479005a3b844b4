#pragma once
// One item of `data.transforms`, `.augment` or `.batch_augment` in a config, turned into the data
// room's options.

#include <string>

#include "config/schema.h"
#include "data/transforms.h"
#include "data/transforms/batch_transforms.h"

namespace paddle::data {

/// The form of an item: a map from the name of a transform to its options.
config::Spec transform_spec();
config::Spec batch_transform_spec();

/// Checks and completes `{name: {fields: …, …}}`; `path` is the dotted path of its list, for
/// messages. Errors of its keys are added to `diagnostics` and the first is thrown.
TransformOptions read_transform(config::Node& item, const std::string& path,
                                config::Diagnostics& diagnostics);
/// The same for an item of `data.batch_augment`.
BatchTransformOptions read_batch_transform(config::Node& item, const std::string& path,
                                           config::Diagnostics& diagnostics);

/// The dtype that a key names; kConfig with its place if there is no such one.
DType dtype_of_key(const config::Section& section, const char* key);

}  // namespace paddle::data
