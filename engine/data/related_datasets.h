#pragma once
// Datasets of a config that are stated by another one: `valid: {like: train}` and `data.split`.

#include "config/diagnostics.h"
#include "config/schema.h"

namespace paddle::data {

/// `{like: train, …}`: another dataset of the section, with these keys merged over it.
config::Spec like_spec();

/// Replaces `split` of a `data:` section and `{like: NAME}` of its datasets by complete datasets.
/// A dataset that is like another one has the share of its own name (`part`, `from`) unless it
/// states one. Wrong names, cycles and shares of datasets of their own go to `diagnostics`.
void expand_related(config::Node& section, config::Diagnostics& diagnostics);

}  // namespace paddle::data
