#pragma once
// The reference of an operation, for people and for programs: `paddle op list` and
// `paddle op show`.

#include <string>

#include "ops/core/op.h"

namespace paddle::inspect {

/// All operations, a line each.
std::string list_text();
/// All operations as one JSON array: name, aliases, family, signature, parameters, results, doc,
/// backends, differentiable, traits.
std::string list_json();
/// The reference page of one operation.
std::string page(const Op& op);

}  // namespace paddle::inspect
