#pragma once
// Regular expressions as grammars. Supported: characters, classes with ranges and negation, `.`,
// escapes (\d \w \s and their negations in ASCII, \t \n \r \f \v \0 \xHH \uHHHH, punctuation),
// groups, alternatives, * + ? {m,n} (lazy forms match the same texts), ^ at the beginning, $ at the
// end. Anything else is rejected.

#include <string>
#include <string_view>

#include "text/grammar/grammar.h"

namespace paddle::grammar {

/// The texts that match as a whole. kUsage with the position of what is wrong.
Grammar compile_regex(std::string_view pattern);

/// A part for the texts that contain a match, as JSON Schema's `pattern` means it, encoded as the
/// inside of a JSON string if `in_json`. `what` names the expression in messages.
Part regex_part(Builder& builder, std::string_view pattern, const std::string& what, bool whole,
                bool in_json);

}  // namespace paddle::grammar
