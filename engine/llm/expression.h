#pragma once
// Jinja expressions of a family's `sources`, over the keys of a model's files.

#include <cstdint>
#include <string>

#include "config/document.h"
#include "text/jinja/value.h"

namespace paddle::llm {

/// The value as JSON; kConfig with the place for an expression that cannot be computed.
std::string evaluate(const config::Node& expression, const jinja::Value& variables);
/// A value of `evaluate` as an integer; kConfig with the place for another one.
int64_t integer_of(const config::Node& expression, const std::string& value);

}  // namespace paddle::llm
