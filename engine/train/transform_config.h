#pragma once
// One item of `data.transforms` or `data.augment` in a config, turned into the data room's options.

#include <string>

#include "data/transforms.h"
#include "model/config_schema.h"

namespace paddle::train {

/// Checks and completes `{name: {fields: …, …}}`; `path` is the dotted path of its list, for
/// messages. Errors of its keys are added to `diagnostics` and the first is thrown.
data::TransformOptions read_transform(model::Node& item, const std::string& path,
                                      model::Diagnostics& diagnostics);

/// The dtype that a key names; kConfig with its place if there is no such one.
DType dtype_of_key(const model::Section& section, const char* key);

}  // namespace paddle::train
