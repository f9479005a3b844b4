#pragma once
// The keywords of JSON schemas: which of them a schema has, and what they say about types.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/grammar/json_schema.h"

namespace paddle::grammar {

/// Throws kUsage with the place in the schema.
template <class... Parts>
[[noreturn]] void reject_schema(const std::string& path, const Parts&... parts) {
  fail(ErrorCode::kUsage, "the schema, ", path, ": ", parts...);
}

/// The keywords of each type; those of others say nothing about a value of this type.
const std::map<std::string, std::set<std::string>>& keywords();
/// "integer": the type of a value.
const char* type_of(const Json& value);

/// Rejects keywords other than these and those that constrain nothing.
void check_keys(const Json& schema, const std::string& path, const std::set<std::string>& allowed);
void check_alone(const Json& schema, const std::string& path, const char* keyword);
/// The types that a schema allows; without `type`, those that its keywords are about.
std::vector<std::string> types_of(const Json& schema, const std::string& path);
/// Rejects a constant that is not of the schema's type.
void check_type(const Json& schema, const Json& found, const std::string& path);

/// The place in the schema that a reference such as "#/$defs/x" names; null if it has none.
const Json* find_place(const Json& root, std::string_view reference);
/// Whether no value can satisfy both, as far as types and constants show it.
bool are_disjoint(const Json& root, const Json& first, const Json& second, const std::string& path);

}  // namespace paddle::grammar
