#pragma once
// The words that mean initialisers in `init=` and `*_init=`.

#include <string_view>

#include "model/values.h"

namespace paddle::model {

bool is_initialiser_word(std::string_view word);
std::vector<std::string> initialiser_words();
/// `normal(0, 0.02)` from its word and arguments. kConfig for arguments that do not fit.
Initialiser make_initialiser(const std::string& word, const ValueList& positional,
                             const NamedValues& named);
/// An initialiser from what an argument may be: itself, a number, or a reference to `zeros`,
/// `ones`.
Initialiser to_initialiser(const Value& value);
/// Whether a value is, or holds at some depth, this list.
bool list_holds(const Value& value, const ValueList* list);

}  // namespace paddle::model
