#pragma once
// The words that mean initializers in `init=` and `*_init=`.

#include <string_view>

#include "lang/eval/values.h"

namespace paddle::lang {

bool is_initializer_word(std::string_view word);
std::vector<std::string> initializer_words();
/// `normal(0, 0.02)` from its word and arguments. kConfig for arguments that do not fit.
Initializer make_initializer(const std::string& word, const ValueList& positional,
                             const NamedValues& named);
/// An initializer from what an argument may be: itself, a number, or a reference to `zeros`,
/// `ones`.
Initializer to_initializer(const Value& value);
/// Whether a value is, or holds at some depth, this list.
bool list_holds(const Value& value, const ValueList* list);

}  // namespace paddle::lang
