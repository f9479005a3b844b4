#pragma once
// JSON Schema (draft 2020-12) as grammars. Every text of the grammar is valid for the schema; the
// grammar may have fewer texts: properties come in the order of the schema and no others are added
// where some are declared, numbers have a bounded number of digits, spaces are few. Keywords that
// it cannot enforce are rejected.

#include "text/grammar/grammar.h"
#include "text/json_value.h"

namespace paddle::grammar {

/// kUsage with the path of what is wrong or not supported.
Grammar compile_json_schema(const Json& schema);

/// Any JSON object.
Grammar json_object_grammar();

}  // namespace paddle::grammar
